import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import software.amazon.event.ruler.Machine;

/**
 * EventRuler EVENTS RULES ANSWERS WARM_SECONDS: matches every event with all rules, on one thread.
 *
 * <p>Prints the best processor time per event in microseconds, the seconds it took to build and the megabytes of heap, and writes
 * the ids that matched each event to ANSWERS, one line per event, so that others can be compared with it.
 */
public final class EventRuler {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int ROUNDS = 5;
  private static long matched;

  public static void main(String[] arguments) throws Exception {
    List<byte[]> events = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) events.add(line.getBytes(StandardCharsets.UTF_8));
    JsonNode rules = JSON.readTree(new File(arguments[1]));

    long heapBefore = usedHeap();
    long began = System.nanoTime();
    Machine machine = new Machine();
    for (JsonNode rule : rules) machine.addRule(rule.get("id").asText(), pattern(rule.get("all")));
    double buildSeconds = (System.nanoTime() - began) / 1e9;
    double megabytes = (usedHeap() - heapBefore) / 1e6;

    // Warm up on a part of the events, so that slow set-ups do not take minutes.
    List<byte[]> some = events.subList(0, Math.min(2000, events.size()));
    long warmUntil = System.nanoTime() + (long) (Double.parseDouble(arguments[3]) * 1e9);
    while (System.nanoTime() < warmUntil) matchAll(machine, some);
    double best = Double.MAX_VALUE;
    for (int round = 0; round < ROUNDS; round++) best = Math.min(best, matchAll(machine, events));

    List<String> answers = new ArrayList<>();
    for (byte[] event : events) answers.add(idsOf(machine.rulesForJSONEvent(new String(event, StandardCharsets.UTF_8))));
    Files.write(Path.of(arguments[2]), answers);
    System.out.printf("%.3f %.3f %.1f%n", best, buildSeconds, megabytes);
    if (matched < 0) System.err.println(matched);
  }

  /** Microseconds of processor time per event. */
  private static double matchAll(Machine machine, List<byte[]> events) throws Exception {
    var threads = ManagementFactory.getThreadMXBean();
    long began = threads.getCurrentThreadCpuTime();
    for (byte[] event : events) matched += machine.rulesForJSONEvent(new String(event, StandardCharsets.UTF_8)).size();
    return (threads.getCurrentThreadCpuTime() - began) / 1e3 / events.size();
  }

  private static String idsOf(List<String> found) {
    return found.stream().map(Integer::valueOf).sorted().map(String::valueOf).collect(Collectors.joining(","));
  }

  private static long usedHeap() throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(50);
    }
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  /** The event pattern that says the same as the tests of a rule. */
  private static String pattern(JsonNode tests) {
    ObjectNode root = JSON.createObjectNode();
    for (JsonNode test : tests) {
      JsonNode path = test.get("path");
      ObjectNode parent = root;
      for (int step = 0; step < path.size() - 1; step++) parent = parent.withObject("/" + path.get(step).asText());
      ArrayNode allowed = parent.putArray(path.get(path.size() - 1).asText());
      JsonNode value = test.get("value");
      String operator = test.get("op").asText();
      switch (operator) {
        case "eq" -> allowed.add(value);
        case "ge" -> allowed.addObject().putArray("numeric").add(">=").add(value);
        case "between" ->
            allowed.addObject().putArray("numeric").add(">=").add(value.get(0)).add("<=").add(value.get(1));
        default -> allowed.addObject().set(operator, value);
      }
    }
    return root.toString();
  }
}
