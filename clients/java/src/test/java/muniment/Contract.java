package muniment;

import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.PrototypeMarshaller;
import io.grpc.ServiceDescriptor;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import muniment.v1.AgentServiceGrpc;
import muniment.v1.AuditServiceGrpc;
import muniment.v1.BlockServiceGrpc;
import muniment.v1.MemoryServiceGrpc;
import muniment.v1.NoteServiceGrpc;
import muniment.v1.PassageServiceGrpc;
import muniment.v1.PromptServiceGrpc;
import muniment.v1.ReleaseServiceGrpc;
import muniment.v1.SessionServiceGrpc;
import muniment.v1.VersionServiceGrpc;

/** The contract's methods by name, such as {@code MemoryService.SaveMemory}. */
final class Contract {
  static final Map<String, MethodDescriptor<Message, Message>> METHODS =
      Stream.of(
              AgentServiceGrpc.getServiceDescriptor(),
              AuditServiceGrpc.getServiceDescriptor(),
              BlockServiceGrpc.getServiceDescriptor(),
              MemoryServiceGrpc.getServiceDescriptor(),
              NoteServiceGrpc.getServiceDescriptor(),
              PassageServiceGrpc.getServiceDescriptor(),
              PromptServiceGrpc.getServiceDescriptor(),
              ReleaseServiceGrpc.getServiceDescriptor(),
              SessionServiceGrpc.getServiceDescriptor(),
              VersionServiceGrpc.getServiceDescriptor())
          .map(ServiceDescriptor::getMethods)
          .flatMap(methods -> methods.stream().map(Contract::ofMessages))
          .collect(Collectors.toMap(Contract::name, Function.identity()));

  private Contract() {}

  /** An empty request of a method. */
  static Message request(MethodDescriptor<Message, Message> method) {
    return prototype(method.getRequestMarshaller());
  }

  /** An empty response of a method. */
  static Message response(MethodDescriptor<Message, Message> method) {
    return prototype(method.getResponseMarshaller());
  }

  private static String name(MethodDescriptor<?, ?> method) {
    return method.getFullMethodName().replaceFirst("^muniment\\.v1\\.", "").replace('/', '.');
  }

  private static Message prototype(MethodDescriptor.Marshaller<Message> marshaller) {
    return ((PrototypeMarshaller<Message>) marshaller).getMessagePrototype();
  }

  @SuppressWarnings("unchecked") // Requests and responses of generated methods are messages.
  private static MethodDescriptor<Message, Message> ofMessages(MethodDescriptor<?, ?> method) {
    return (MethodDescriptor<Message, Message>) method;
  }
}
