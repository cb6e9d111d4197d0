import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Measures Kafka's controllers the way bench/closed_loop.py measures Quorate.
 *
 * <p>"prepare BROKER" creates the topics. "write CONTROLLERS CLIENTS WARM_UP_S SECONDS": each client
 * alters a topic's configuration, waits for the answer and alters again. "failover CONTROLLERS": one
 * client; prints the wall time of every answer. A controller answers one request of a connection at
 * a time, so each client has an Admin of its own.
 */
public final class KafkaLoad {
  private static final int TOPICS = 64;
  private static final int VALUE_CHARACTERS = 100;
  private static final int SAMPLES = 1 << 14;
  private static final int OPENERS = 16;
  private static final int REQUEST_MS = 30_000;
  private static final int FAILOVER_REQUEST_MS = 5_000;
  private static final int FIRST_ANSWER_MS = 1_000;
  private static final int ANSWER_MS = 200;
  private static final String CONFIG = "leader.replication.throttled.replicas";

  private static final AtomicLong numbers = new AtomicLong(System.currentTimeMillis() << 12);

  private static Admin admin(String key, String addresses, int timeoutMs) {
    Properties settings = new Properties();
    settings.put(key, addresses);
    settings.put("request.timeout.ms", timeoutMs);
    settings.put("default.api.timeout.ms", timeoutMs);
    settings.put("retry.backoff.ms", 10);
    settings.put("retry.backoff.max.ms", 50);
    settings.put("reconnect.backoff.ms", 10);
    settings.put("reconnect.backoff.max.ms", 50);
    settings.put("auto.include.jmx.reporter", false);
    return Admin.create(settings);
  }

  /** The only free text that a topic's configuration takes: pairs of partition and broker. */
  private static String value(long number) {
    StringBuilder text = new StringBuilder(VALUE_CHARACTERS);
    long mixed = number;
    while (text.length() < VALUE_CHARACTERS - 8) {
      text.append(text.length() > 0 ? "," : "").append(Math.floorMod(mixed, 100_000)).append(":1");
      mixed = mixed * 6364136223846793005L + 1442695040888963407L;
      mixed ^= mixed >>> 29;
    }
    while (text.length() < VALUE_CHARACTERS) {
      text.append('1');
    }
    return text.toString();
  }

  private static Future<Void> alter(Admin admin, long number) {
    return admin.incrementalAlterConfigs(change(number)).all();
  }

  private static Map<ConfigResource, Collection<AlterConfigOp>> change(long number) {
    var topic = new ConfigResource(ConfigResource.Type.TOPIC, "bench-" + number % TOPICS);
    var entry = new ConfigEntry(CONFIG, value(number));
    return Map.of(topic, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)));
  }

  private static void prepare(String broker) throws Exception {
    try (Admin admin = admin("bootstrap.servers", broker, REQUEST_MS)) {
      List<NewTopic> topics = new ArrayList<>();
      for (int i = 0; i < TOPICS; i++) {
        topics.add(new NewTopic("bench-" + i, 1, (short) 1));
      }
      admin.createTopics(topics).all().get();
    }
  }

  /** One closed loop: the answer to a change sends the next. */
  private static final class Loop {
    private final Admin admin;
    private final CountDownLatch ended;
    private final long from;
    private final long until;
    private double[] tookMs = new double[SAMPLES];
    private int count;
    private long errors;

    Loop(Admin admin, CountDownLatch ended, long from, long until) {
      this.admin = admin;
      this.ended = ended;
      this.from = from;
      this.until = until;
    }

    void begin() {
      long began = System.nanoTime();
      if (began >= until) {
        ended.countDown();
        return;
      }
      admin
          .incrementalAlterConfigs(change(numbers.incrementAndGet()))
          .all()
          .whenComplete((nothing, error) -> answered(began, error));
    }

    private void answered(long began, Throwable error) {
      long now = System.nanoTime();
      if (error != null) {
        errors++;
      } else if (began >= from && now <= until) {
        if (count == tookMs.length) {
          tookMs = Arrays.copyOf(tookMs, 2 * count);
        }
        tookMs[count++] = (now - began) / 1e6;
      }
      begin();
    }
  }

  private static void write(String controllers, int clients, double warmUp, double seconds)
      throws Exception {
    Admin[] admins = new Admin[clients];
    ExecutorService openers = Executors.newFixedThreadPool(OPENERS);
    List<Future<Void>> opened = new ArrayList<>();
    for (int i = 0; i < clients; i++) {
      Admin admin = admins[i] = admin("bootstrap.controllers", controllers, REQUEST_MS);
      opened.add(openers.submit(() -> alter(admin, numbers.incrementAndGet()).get()));
    }
    for (Future<Void> each : opened) {
      each.get();
    }
    openers.shutdown();
    CountDownLatch ended = new CountDownLatch(clients);
    long from = System.nanoTime() + (long) (warmUp * 1e9);
    long until = from + (long) (seconds * 1e9);
    Loop[] loops = new Loop[clients];
    for (int i = 0; i < clients; i++) {
      loops[i] = new Loop(admins[i], ended, from, until);
      loops[i].begin();
    }
    double used = Figures.measured(from, until);
    Figures.await(ended);
    double[] ms =
        Arrays.stream(loops)
            .flatMapToDouble(loop -> Arrays.stream(loop.tookMs, 0, loop.count))
            .toArray();
    long errors = Arrays.stream(loops).mapToLong(loop -> loop.errors).sum();
    Figures.report(clients, seconds, ms.length, ms, errors, used);
  }

  /**
   * An Admin client may stay with a dead controller for many seconds. So one that has no answer in
   * time is replaced; a new one has longer for its first.
   */
  private static void failover(String controllers) throws Exception {
    List<String> addresses = new ArrayList<>(List.of(controllers.split(",")));
    Admin admin = null;
    boolean isNew = true;
    while (!System.out.checkError()) {
      if (admin == null) {
        Collections.shuffle(addresses);
        admin = admin("bootstrap.controllers", String.join(",", addresses), FAILOVER_REQUEST_MS);
        isNew = true;
      }
      try {
        alter(admin, numbers.incrementAndGet())
            .get(isNew ? FIRST_ANSWER_MS : ANSWER_MS, TimeUnit.MILLISECONDS);
        isNew = false;
      } catch (TimeoutException | ExecutionException unavailable) {
        Admin former = admin;
        new Thread(() -> former.close(Duration.ZERO)).start();
        admin = null;
        continue;
      }
      Figures.acknowledged();
    }
  }

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "prepare" -> prepare(args[1]);
      case "failover" -> failover(args[1]);
      default ->
          write(
              args[1],
              Integer.parseInt(args[2]),
              Double.parseDouble(args[3]),
              Double.parseDouble(args[4]));
    }
  }

  private KafkaLoad() {}
}
