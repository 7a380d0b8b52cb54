<?php
// Muniment from PHP, with stubs alone: a host opens a session, which saves a memory, finds it, and misses another.
//
// The address and the host key come from MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY. Without TLS, so on loopback only.
// Needs the extension `grpc`, the packages `grpc/grpc` and `google/protobuf`, and an autoloader that finds `stubs`.

use Google\Rpc\ErrorInfo;
use Google\Rpc\Status;
use Muniment\V1\AgentServiceClient;
use Muniment\V1\Classification;
use Muniment\V1\CreateAgentRequest;
use Muniment\V1\GetMemoryRequest;
use Muniment\V1\MemoryServiceClient;
use Muniment\V1\OpenSessionRequest;
use Muniment\V1\SaveMemoryRequest;
use Muniment\V1\SessionServiceClient;

require 'vendor/autoload.php';

/** Why a call failed, as the contract names it. Empty if the answer does not come from Muniment itself. */
function reason(stdClass $failed): string
{
    GPBMetadata\Google\Rpc\ErrorDetails::initOnce(); // makes the details known, or they cannot be unpacked
    $status = new Status();
    $status->mergeFromString($failed->metadata['grpc-status-details-bin'][0] ?? '');
    foreach ($status->getDetails() as $detail) {
        if ($detail->is(ErrorInfo::class) && $detail->unpack()->getDomain() === 'muniment.v1') {
            return $detail->unpack()->getReason();
        }
    }
    return '';
}

/** Make a call with a credential. Every call needs a deadline, in microseconds. Throws what the reason is. */
function call(Grpc\BaseStub $service, string $method, string $credential, object $request): object
{
    $metadata = ['authorization' => ["Bearer $credential"]];
    [$answer, $status] = $service->$method($request, $metadata, ['timeout' => 10_000_000])->wait();
    return $answer ?? throw new RuntimeException(reason($status) ?: $status->details);
}

$plain = ['credentials' => Grpc\ChannelCredentials::createInsecure()];
[$agents, $sessions, $memories] = array_map(
    fn ($service) => new $service(getenv('MUNIMENT_ADDRESS'), $plain),
    [AgentServiceClient::class, SessionServiceClient::class, MemoryServiceClient::class],
);
$key = getenv('MUNIMENT_HOST_KEY');

$agent = call($agents, 'CreateAgent', $key, new CreateAgentRequest())->getAgent();
$internal = Classification::CLASSIFICATION_INTERNAL;
$opening = new OpenSessionRequest(['agent_id' => $agent->getAgentId(), 'taint' => $internal]);
$token = call($sessions, 'OpenSession', $key, $opening)->getToken();

call($memories, 'SaveMemory', $token, new SaveMemoryRequest(['key' => 'plan', 'content' => 'ship on Friday']));
foreach (['plan', 'no-such-key'] as $wanted) {
    try {
        $found = call($memories, 'GetMemory', $token, new GetMemoryRequest(['key' => $wanted]));
        echo "$wanted: ", $found->getMemory()->getContent(), "\n";
    } catch (RuntimeException $refused) {
        echo "$wanted: ", $refused->getMessage(), "\n";
    }
}
