import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What the load programs in Java share: the measured time, and the figures that they print. */
final class Figures {
  private static final int END_SECONDS_MAX = 5;

  /** Prints BEGIN and END around the measured time; returns the processor seconds in it. */
  static double measured(long from, long until) throws InterruptedException {
    sleepUntil(from);
    double before = processorSeconds();
    say("BEGIN");
    sleepUntil(until);
    double used = processorSeconds() - before;
    say("END");
    return used;
  }

  /** Waits until every closed loop has ended; ends the program if one does not. */
  static void await(CountDownLatch ended) throws InterruptedException {
    if (!ended.await(END_SECONDS_MAX, TimeUnit.SECONDS)) {
      fail("an operation does not end");
    }
  }

  static void fail(String reason) {
    System.err.println(reason);
    Runtime.getRuntime().halt(1);
  }

  /** Prints the figures and ends the program. */
  static void report(
      int clients, double seconds, int operations, double[] ms, long errors, double used) {
    Arrays.sort(ms);
    say(
        String.format(
            Locale.ROOT,
            "{\"clients\":%d,\"operations\":%d,\"rate\":%.1f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,"
                + "\"errors\":%d,\"load_us\":%.1f}",
            clients,
            operations,
            operations / seconds,
            ms.length == 0 ? 0 : ms[ms.length / 2],
            ms.length == 0 ? 0 : ms[(int) (ms.length * 0.99)],
            errors,
            operations == 0 ? 0 : used * 1e6 / operations));
    Runtime.getRuntime().halt(0);
  }

  /** Prints the wall time of a success in nanoseconds. */
  static void acknowledged() {
    Instant now = Instant.now();
    say(Long.toString(now.getEpochSecond() * 1_000_000_000L + now.getNano()));
  }

  static void say(String text) {
    System.out.println(text);
    System.out.flush();
  }

  static double processorSeconds() {
    var bean = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    return bean.getProcessCpuTime() / 1e9;
  }

  private static void sleepUntil(long nanos) throws InterruptedException {
    TimeUnit.NANOSECONDS.sleep(Math.max(0, nanos - System.nanoTime()));
  }

  private Figures() {}
}
