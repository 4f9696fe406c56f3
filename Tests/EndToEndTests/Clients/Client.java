import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.URL;
import javax.net.ssl.HttpsURLConnection;

/**
 * Fetches a URL, or fetches it as often as the property `times` says; proxy and trust store come as system properties.
 * PROXY_USER may be user:password.
 */
public class Client {
  public static void main(String[] arguments) throws Exception {
    var user = System.getenv("PROXY_USER");
    if (user != null) {
      var parts = user.split(":", 2);
      Authenticator.setDefault(new Authenticator() {
        @Override
        protected PasswordAuthentication getPasswordAuthentication() {
          return new PasswordAuthentication(parts[0], parts[1].toCharArray());
        }
      });
    }
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
