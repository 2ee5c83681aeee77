package leveret;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** Runs every public method of the test classes (or of those that are named) that takes a {@link World}, and prints one line for each. */
public final class Suite {

  private static final List<Class<?>> CLASSES =
      List.of(
          RoutingTest.class,
          PublishingTest.class,
          ConsumingTest.class,
          QueueTest.class,
          FeatureTest.class,
          OursTest.class,
          ErrorTest.class,
          ReplyTest.class,
          AlarmTest.class,
          StreamTest.class,
          StreamOffsetTest.class,
          StreamBatchTest.class,
          StreamFilterTest.class,
          StreamGroupTest.class,
          StreamSuperTest.class,
          StreamCodeTest.class,
          StreamAmqpTest.class,
          StreamFailureTest.class,
          SpringDeclaringTest.class,
          SpringTemplateTest.class,
          SpringListenerTest.class,
          SpringFailureTest.class,
          SpringClusterTest.class);

  private Suite() {}

  public static void main(String[] arguments) throws Exception {
    boolean failed = false;
    List<Class<?>> chosen = CLASSES.stream().filter(type -> arguments.length == 0 || Arrays.asList(arguments).contains(type.getSimpleName())).toList();
    for (Class<?> type : chosen) {
      for (Method method : testsOf(type)) {
        failed |= !run(type, method);
      }
    }
    System.out.flush();
    System.exit(failed ? 1 : 0);
  }

  private static List<Method> testsOf(Class<?> type) {
    return Arrays.stream(type.getDeclaredMethods())
        .filter(method -> Modifier.isPublic(method.getModifiers()))
        .filter(method -> Arrays.equals(method.getParameterTypes(), new Class<?>[] {World.class}))
        .sorted(Comparator.comparing(Method::getName))
        .toList();
  }

  private static boolean run(Class<?> type, Method method) throws Exception {
    String name = type.getSimpleName() + " " + method.getName();
    long started = System.nanoTime();
    try (World world = new World()) {
      method.invoke(type.getDeclaredConstructor().newInstance(), world);
      System.out.printf("ok   java %s (%.2f s)%n", name, (System.nanoTime() - started) / 1e9);
      return true;
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof World.Skipped skipped) {
        System.out.printf("skip java %s: %s%n", name, skipped.getMessage());
        return true;
      }
      System.out.printf("FAIL java %s%n", name);
      explain(thrown.getCause());
      return false;
    }
  }

  private static void explain(Throwable cause) {
    for (Throwable at = cause; at != null; at = at.getCause()) {
      System.out.println("     " + at);
      Arrays.stream(at.getStackTrace())
          .filter(frame -> frame.getClassName().startsWith("leveret."))
          .forEach(frame -> System.out.println("       at " + frame));
    }
  }
}
