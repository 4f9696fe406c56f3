import java.net.URL;
import javax.net.ssl.HttpsURLConnection;

/** Fetches a URL, or fetches it as often as the property `times` says; proxy and trust store come as system properties. */
public class Client {
  public static void main(String[] arguments) throws Exception {
    for (int left = Integer.getInteger("times", 1); left > 0; left--) {
      var connection = (HttpsURLConnection) new URL(arguments[0]).openConnection();
      connection.setConnectTimeout(15000);
      connection.setReadTimeout(15000);
      try (var body = connection.getInputStream()) {
        body.transferTo(System.out);
      }
    }
  }
}
