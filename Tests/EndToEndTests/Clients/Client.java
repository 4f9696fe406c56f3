import java.net.URL;
import javax.net.ssl.HttpsURLConnection;

/** Fetches a URL; proxy and trust store come as system properties, as they do for any Java program. */
public class Client {
  public static void main(String[] arguments) throws Exception {
    var connection = (HttpsURLConnection) new URL(arguments[0]).openConnection();
    connection.setConnectTimeout(15000);
    connection.setReadTimeout(15000);
    try (var body = connection.getInputStream()) {
      body.transferTo(System.out);
    }
  }
}
