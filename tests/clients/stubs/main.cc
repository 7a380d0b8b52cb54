// Muniment from C++, with stubs alone: a host opens a session, which saves a memory, finds it, and misses another.
//
// The address and the host key come from MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY. Without TLS, so on loopback only.
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <iostream>
#include <memory>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muniment/v1/agent_service.grpc.pb.h"
#include "muniment/v1/memory_service.grpc.pb.h"
#include "muniment/v1/session_service.grpc.pb.h"

namespace v1 = muniment::v1;

// Why a call failed, as the contract names it. Empty if the answer does not come from Muniment itself.
std::string ReasonOf(const grpc::Status &failed) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  status.ParseFromString(failed.error_details());
  for (const auto &detail : status.details())
    if (detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info) && info.domain() == "muniment.v1")
      return info.reason();
  return "";
}

// Make a call with a credential. Every call needs a deadline.
template <typename Stub, typename Method, typename Request, typename Response>
grpc::Status Call(Stub &stub, Method method, const std::string &credential, const Request &request, Response *response) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + credential);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  return ((*stub).*method)(&context, request, response);
}

int main() {
  const std::string key = std::getenv("MUNIMENT_HOST_KEY");
  auto channel = grpc::CreateChannel(std::getenv("MUNIMENT_ADDRESS"), grpc::InsecureChannelCredentials());
  auto agents = v1::AgentService::NewStub(channel);
  auto sessions = v1::SessionService::NewStub(channel);
  auto memories = v1::MemoryService::NewStub(channel);

  v1::CreateAgentResponse agent;
  Call(agents, &v1::AgentService::Stub::CreateAgent, key, v1::CreateAgentRequest(), &agent);

  v1::OpenSessionRequest opening;
  opening.set_agent_id(agent.agent().agent_id());
  opening.set_taint(v1::CLASSIFICATION_INTERNAL);
  v1::OpenSessionResponse session;
  auto status = Call(sessions, &v1::SessionService::Stub::OpenSession, key, opening, &session);
  if (!status.ok()) {
    std::cerr << ReasonOf(status) << ": " << status.error_message() << "\n";
    return 1;
  }

  v1::SaveMemoryRequest saving;
  saving.set_key("plan");
  saving.set_content("ship on Friday");
  v1::SaveMemoryResponse saved;
  Call(memories, &v1::MemoryService::Stub::SaveMemory, session.token(), saving, &saved);

  for (const std::string &wanted : {"plan", "no-such-key"}) {
    v1::GetMemoryRequest getting;
    getting.set_key(wanted);
    v1::GetMemoryResponse got;
    status = Call(memories, &v1::MemoryService::Stub::GetMemory, session.token(), getting, &got);
    std::cout << wanted << ": " << (status.ok() ? got.memory().content() : ReasonOf(status)) << "\n";
  }
}
