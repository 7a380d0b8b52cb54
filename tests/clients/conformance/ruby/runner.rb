# Plays scenarios of `tests/clients/conformance` with nothing but the stubs that protoc makes of proto/api.binpb, as any language
# can that has no client, and prints the results, one line of JSON per step.
#
#   MUNIMENT_ADDRESS=… MUNIMENT_HOST_KEY=… [MUNIMENT_TLS_CA=…] ruby tests/clients/conformance/ruby/runner.rb FILE
#
# It calls once: it does not repeat what fails, as a client would.

require "json"

STUBS = File.join(__dir__, "stubs")
$LOAD_PATH.unshift(STUBS)
require "google/protobuf/well_known_types"
require "google/rpc/error_details_pb"
require "google/rpc/status_pb"
Dir.glob("muniment/v1/*.rb", base: STUBS).sort.each { |file| require file.delete_suffix(".rb") }

SECONDS = 10.0
CODES = GRPC::Core::StatusCodes.constants.to_h { |name| [GRPC::Core::StatusCodes.const_get(name), name.to_s] }

# A step names a variable that was never saved.
class Unresolved < StandardError; end

# Makes the calls of one host and its sessions.
class Player
  def initialize(address, host_key, ca_file)
    @host_key = host_key
    credentials = ca_file ? GRPC::Core::ChannelCredentials.new(File.read(ca_file)) : :this_channel_is_insecure
    @channel = GRPC::ClientStub.setup_channel(nil, address, credentials)
  end

  # Yields the result of each step.
  def play(scenario)
    variables = {}
    scenario["steps"].each_with_index do |step, number|
      came = result_of(step, variables)
      step.fetch("save", {}).each { |name, path| save(variables, name, path, came["response"]) }
      yield({ "scenario" => scenario["name"], "step" => number, **came })
    end
  end

  private

  def result_of(step, variables)
    { "status" => "OK", "response" => JSON.parse(call(resolved(step, variables)).to_json) }
  rescue Unresolved
    { "status" => "UNRESOLVED" }
  rescue GRPC::BadStatus => e
    failure = failure_of(e)
    lost = failure["status"] == "UNAVAILABLE" && failure["reason"].empty? # said by the library, not by the service
    raise if lost && !step["may_be_lost"]

    failure
  end

  def call(step)
    service, method = step["call"].split(".")
    generated = Muniment::V1.const_get(service)
    stub = generated::Stub.new(nil, nil, channel_override: @channel)
    rpc = generated::Service.rpc_descs.fetch(method.to_sym)
    requests = step.fetch("requests") { [step["request"]] }
    given = messages(rpc, requests)
    seconds = step.key?("deadline_ms") ? step["deadline_ms"] / 1000.0 : SECONDS
    stub.public_send(
      GRPC::GenericService.underscore(method), given, deadline: Time.now + seconds, metadata: metadata(step["as"])
    )
  end

  # The one request of a call, or the requests of a stream.
  def messages(rpc, requests)
    return requests.map { |each| rpc.input.type.decode_json(JSON.generate(each)) }.each if rpc.client_streamer?

    rpc.input.decode_json(JSON.generate(requests.first))
  end

  def metadata(caller)
    return {} if caller == "none"

    { "authorization" => "Bearer #{caller == 'host' ? @host_key : caller}" }
  end

  # The error as the contract describes it: ErrorInfo has the reason, and the other details follow.
  def failure_of(error)
    details = error.to_rpc_status&.details.to_a
    infos, others = details.partition { |each| each.is(Google::Rpc::ErrorInfo) }
    {
      "status" => CODES.fetch(error.code),
      "reason" => infos.first&.unpack(Google::Rpc::ErrorInfo)&.reason.to_s,
      "message" => error.details.dup.force_encoding("UTF-8"),
      "details" => others.map { |each| JSON.parse(each.to_json) },
      "request_id" => error.metadata["request-id"].to_s
    }
  end
end

# The value, with each `${name}` in it replaced.
def resolved(value, variables)
  case value
  when Hash then value.transform_values { |each| resolved(each, variables) }
  when Array then value.map { |each| resolved(each, variables) }
  when String then value.gsub(/\$\{(\w+)\}/) { variables.fetch(Regexp.last_match(1)) { |name| raise Unresolved, name } }
  else value
  end
end

# Saves the value at a dotted path of the response, if there is one.
def save(variables, name, path, response)
  found = path.split(".").reduce(response) { |value, part| value.is_a?(Array) ? value[part.to_i] : value && value[part] }
  variables[name] = found.is_a?(String) ? found : JSON.generate(found) unless found.nil?
end

begin
  $stdout.sync = true
  scenarios = JSON.parse(File.read(ARGV.fetch(0)))["scenarios"]
  player = Player.new(ENV.fetch("MUNIMENT_ADDRESS"), ENV.fetch("MUNIMENT_HOST_KEY"), ENV.fetch("MUNIMENT_TLS_CA", nil))
  scenarios.each { |scenario| player.play(scenario) { |record| puts JSON.generate(record) } }
rescue StandardError => e
  warn "#{e.class}: #{e.message}"
  exit 2
end
