import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import okhttp3.OkHttpClient;
import pl.allegro.tech.hermes.client.HermesClient;
import pl.allegro.tech.hermes.client.HermesClientBuilder;
import pl.allegro.tech.hermes.client.HermesResponse;
import pl.allegro.tech.hermes.client.okhttp.OkHttpHermesSender;

/** Publishes so many messages with Allegro's own client, its retries on, and prints the id of each. Usage: Publisher URI TOPIC COUNT */
public class Publisher {
    public static void main(String[] args) {
        HermesClient client = HermesClientBuilder.hermesClient(new OkHttpHermesSender(new OkHttpClient()))
            .withURI(URI.create(args[0]))
            .withRetries(5)
            .build();
        List<CompletableFuture<HermesResponse>> sent = new ArrayList<>();
        for (int n = 0; n < Integer.parseInt(args[2]); n++) {
            sent.add(client.publishJSON(args[1], "{\"n\":" + n + "}"));
            if (sent.size() % 200 == 0) {
                sent.forEach(CompletableFuture::join);
            }
        }
        for (CompletableFuture<HermesResponse> one : sent) {
            HermesResponse response = one.join();
            System.out.println(response.getHttpStatus() + " " + response.getMessageId());
        }
        System.exit(0);
    }
}
