import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * Measures a ZooKeeper ensemble the way bench/closed_loop.py measures Quorate.
 *
 * <p>"MODE ADDRESS CLIENTS WARM_UP_S SECONDS": mode write, linearizable (sync and get, pipelined on
 * one session, which keeps their order), local (get) or watch (one writer; each client is a watcher
 * with a session of its own). "failover ADDRESSES": one writer; prints the wall time of every answer.
 */
public final class ZooKeeperLoad {
  private static final int NODES = 64;
  private static final int SESSIONS_MAX = 16;
  private static final int SAMPLES = 1 << 16;
  private static final int VALUE_BYTES = 100;
  private static final int SESSION_MS = 30_000;
  private static final int FAILOVER_SESSION_MS = 6_000;
  private static final int END_SECONDS_MAX = 5;
  private static final int RETRY_MS = 5;
  private static final String WATCHED = "/bench-watched";

  private static final AtomicLong numbers = new AtomicLong(System.currentTimeMillis() << 12);

  private static ZooKeeper connect(String addresses, int timeoutMs) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper session =
        new ZooKeeper(
            addresses,
            timeoutMs,
            event -> {
              if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
              }
            });
    connected.await();
    return session;
  }

  private static byte[] value(long number) {
    byte[] value = new byte[VALUE_BYTES];
    Arrays.fill(value, (byte) 'x');
    byte[] prefix = Long.toHexString(number).getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(prefix, 0, value, 0, prefix.length);
    return value;
  }

  private static String path(long number) {
    return "/bench-" + number % NODES;
  }

  private static void create(ZooKeeper session, String path) throws Exception {
    try {
      session.create(path, value(0), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    } catch (KeeperException.NodeExistsException known) {
      return; // by an earlier run
    }
  }

  /** One closed loop: the answer to an operation sends the next. */
  private static final class Loop {
    private final String mode;
    private final ZooKeeper session;
    private final CountDownLatch ended;
    private final long from;
    private final long until;
    private double[] tookMs = new double[SAMPLES];
    private int count;
    private long errors;
    private long began;

    Loop(String mode, ZooKeeper session, CountDownLatch ended, long from, long until) {
      this.mode = mode;
      this.session = session;
      this.ended = ended;
      this.from = from;
      this.until = until;
    }

    void begin() {
      began = System.nanoTime();
      if (began >= until) {
        ended.countDown();
        return;
      }
      long number = numbers.incrementAndGet();
      String path = path(number);
      if (mode.equals("write")) {
        session.setData(path, value(number), -1, (code, p, c, stat) -> answered(code), null);
        return;
      }
      if (mode.equals("linearizable")) {
        session.sync(path, (code, p, c) -> errors += code == 0 ? 0 : 1, null);
      }
      session.getData(path, false, (code, p, c, data, stat) -> answered(code), null);
    }

    private void answered(int code) {
      long now = System.nanoTime();
      if (code != 0) {
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

  private static void load(String mode, String address, int clients, double warmUp, double seconds)
      throws Exception {
    ZooKeeper[] sessions = new ZooKeeper[Math.min(clients, SESSIONS_MAX)];
    for (int i = 0; i < sessions.length; i++) {
      sessions[i] = connect(address, SESSION_MS);
    }
    for (int i = 0; i < NODES; i++) {
      create(sessions[0], path(i));
    }
    CountDownLatch ended = new CountDownLatch(clients);
    long from = System.nanoTime() + (long) (warmUp * 1e9);
    long until = from + (long) (seconds * 1e9);
    Loop[] loops = new Loop[clients];
    for (int i = 0; i < clients; i++) {
      loops[i] = new Loop(mode, sessions[i % sessions.length], ended, from, until);
      loops[i].begin();
    }
    double used = Figures.measured(from, until);
    Figures.await(ended);
    double[] all =
        Arrays.stream(loops)
            .flatMapToDouble(loop -> Arrays.stream(loop.tookMs, 0, loop.count))
            .toArray();
    long errors = Arrays.stream(loops).mapToLong(loop -> loop.errors).sum();
    Figures.report(clients, seconds, all.length, all, errors, used);
  }

  /** An event names no version, so a watcher's time runs from the begin of the newest write. */
  private static void watch(String address, int watchers, double warmUp, double seconds)
      throws Exception {
    ZooKeeper writer = connect(address, SESSION_MS);
    create(writer, WATCHED);
    AtomicLong began = new AtomicLong();
    AtomicLong heard = new AtomicLong();
    AtomicLong measuredFrom = new AtomicLong(Long.MAX_VALUE);
    var tookMs = new ConcurrentLinkedQueue<Double>();
    for (int i = 0; i < watchers; i++) {
      connect(address, SESSION_MS)
          .addWatch(
              WATCHED,
              event -> {
                if (event.getType() == EventType.NodeDataChanged) {
                  heard.incrementAndGet();
                  if (began.get() >= measuredFrom.get()) {
                    tookMs.add((System.nanoTime() - began.get()) / 1e6);
                  }
                }
              },
              AddWatchMode.PERSISTENT);
    }
    long from = System.nanoTime() + (long) (warmUp * 1e9);
    long until = from + (long) (seconds * 1e9);
    measuredFrom.set(from);
    int written = 0;
    int measured = 0;
    double before = 0;
    while (System.nanoTime() < until) {
      began.set(System.nanoTime());
      if (measured == 0 && began.get() >= from) {
        before = Figures.processorSeconds();
        Figures.say("BEGIN");
      }
      writer.setData(WATCHED, value(written), -1);
      written++;
      measured += began.get() >= from ? 1 : 0;
    }
    double used = Figures.processorSeconds() - before;
    Figures.say("END");
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(END_SECONDS_MAX);
    while (heard.get() < (long) written * watchers) {
      if (System.nanoTime() > deadline) {
        Figures.fail((long) written * watchers - heard.get() + " events did not come");
      }
      Thread.sleep(RETRY_MS);
    }
    double[] all = tookMs.stream().mapToDouble(Double::doubleValue).toArray();
    Figures.report(watchers, seconds, measured, all, 0, used);
  }

  private static void failover(String addresses) throws Exception {
    ZooKeeper session = connect(addresses, FAILOVER_SESSION_MS);
    create(session, "/bench-failover");
    while (!System.out.checkError()) {
      try {
        session.setData("/bench-failover", value(numbers.incrementAndGet()), -1);
      } catch (KeeperException.SessionExpiredException expired) {
        session = connect(addresses, FAILOVER_SESSION_MS);
        continue;
      } catch (KeeperException unavailable) {
        Thread.sleep(RETRY_MS);
        continue;
      }
      Figures.acknowledged();
    }
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("failover")) {
      failover(args[1]);
      return;
    }
    int clients = Integer.parseInt(args[2]);
    double warmUp = Double.parseDouble(args[3]);
    double seconds = Double.parseDouble(args[4]);
    if (args[0].equals("watch")) {
      watch(args[1], clients, warmUp, seconds);
    } else {
      load(args[0], args[1], clients, warmUp, seconds);
    }
  }

  private ZooKeeperLoad() {}
}
