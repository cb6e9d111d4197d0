import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;

/** `create BROKER PREFIX COUNT` makes topics; `list BROKER` prints name, id and partitions of each. */
public class Topics {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[1]);
        try (Admin admin = Admin.create(properties)) {
            if (arguments[0].equals("create")) {
                for (int n = 0; n < Integer.parseInt(arguments[3]); n++) {
                    NewTopic topic = new NewTopic(arguments[2] + n, 3, (short) 1);
                    admin.createTopics(List.of(topic)).all().get();
                }
                return;
            }
            Map<String, TopicDescription> found =
                admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get();
            for (TopicDescription topic : found.values()) {
                System.out.printf(
                    "topic %s %s %d%n", topic.name(), topic.topicId(), topic.partitions().size());
            }
        }
    }
}
