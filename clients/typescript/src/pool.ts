// Several connections to one server, which gives each to one of its workers.

import type { DescMessage, DescMethodStreaming, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { ContextValues, StreamResponse, Transport, UnaryResponse } from "@connectrpc/connect";

interface Member {
  readonly transport: Transport;
  underWay: number;
}

/**
 * A transport that spreads calls over others. A call takes the one with the fewest calls under way, the first of
 * several, so that a program that makes one call at a time has one connection.
 */
export class Pool implements Transport {
  readonly #members: readonly Member[];

  constructor(transports: readonly Transport[]) {
    this.#members = transports.map((transport) => ({ transport, underWay: 0 }));
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    return this.#over((transport) => transport.unary(method, signal, timeoutMs, header, input, contextValues));
  }

  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    return this.#over((transport) => transport.stream(method, signal, timeoutMs, header, input, contextValues));
  }

  async #over<R>(call: (transport: Transport) => Promise<R>): Promise<R> {
    const member = this.#members.reduce((least, each) => (each.underWay < least.underWay ? each : least));
    member.underWay += 1;
    try {
      return await call(member.transport);
    } finally {
      member.underWay -= 1;
    }
  }
}
