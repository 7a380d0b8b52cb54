// Making calls: credential, deadline, retries, errors.

import {
  create,
  type DescMessage,
  type DescMethodStreaming,
  type DescMethodUnary,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type StreamResponse,
  type Transport,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { Connection } from "./connection.js";
import { errorOf, MunimentError, neverBegan } from "./errors.js";
import { mayRepeat, passes, pauseFor, pauseMs } from "./retries.js";

const LONGEST_TIMEOUT_MS = 86_400_000;

/** How calls are made unless they say otherwise. */
export interface CallDefaults {
  /** Milliseconds that a call may take in all, attempts and pauses together: more than 0, at most a day. */
  readonly timeoutMs: number;
  /** Whether calls are made again until their deadline, where that is safe. */
  readonly retries: boolean;
}

/** How long a call waits: the milliseconds that are left of its deadline, and what aborts it. */
export interface Deadline {
  readonly leftMs: () => number;
  readonly signal: AbortSignal | undefined;
}

/** What keeps a credential valid. */
export interface Renewal {
  /** Before a call. */
  fresh(deadline: Deadline): Promise<void>;
  /** Whether the credential of a call that was refused, and so not executed, is valid again. */
  renewed(refusal: MunimentError, deadline: Deadline): Promise<boolean>;
}

/** A transport that makes calls over a connection with one credential, and throws errors of ours. */
export class Calls implements Transport {
  readonly #connection: Connection;
  readonly #credential: string;
  readonly #defaults: CallDefaults;
  readonly #renewal: Renewal | undefined;

  constructor(connection: Connection, credential: string, defaults: CallDefaults, renewal?: Renewal) {
    this.#connection = connection;
    this.#credential = checkedCredential(credential);
    this.#renewal = renewal;
    this.#defaults = { ...defaults, timeoutMs: checkedTimeout(defaults.timeoutMs) };
  }

  get credential(): string {
    return this.#credential;
  }

  /** The same connection for another caller. */
  withCredential(credential: string, renewal?: Renewal): Calls {
    return new Calls(this.#connection, credential, this.#defaults, renewal);
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    const request = create(method.input, input);
    requireWholeTexts(request);
    const { transport } = this.#connection;
    let hasBegun = false;
    const attempt = (leftMs: () => number) => {
      hasBegun = false;
      const send = async () => {
        hasBegun = true;
        try {
          return await transport.unary(method, signal, leftMs(), this.#headers(header), request, contextValues);
        } catch (failure) {
          if (!(failure instanceof ConnectError)) {
            throw failure;
          }
          const error = await this.#error(failure);
          hasBegun = !neverBegan(failure) && error.reasonName !== "CREDENTIAL_EXPIRED";
          throw error;
        }
      };
      return this.#renewed(send, { leftMs, signal });
    };
    const again = (error: MunimentError) => passes(error) && (!hasBegun || mayRepeat(method, request));
    return this.repeat(attempt, again, signal, timeoutMs);
  }

  /** Make attempts, each in the milliseconds that are left, until one succeeds, or must not be made again. */
  async repeat<Result>(
    attempt: (leftMs: () => number) => Promise<Result>,
    again: (error: MunimentError) => boolean,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
  ): Promise<Result> {
    const deadline = performance.now() + this.#timeout(timeoutMs);
    const leftMs = leftUntil(deadline);
    let last: MunimentError | undefined;
    for (let number = 1; ; number += 1) {
      try {
        return await attempt(leftMs);
      } catch (error) {
        if (!(error instanceof MunimentError && this.#defaults.retries && again(error))) {
          throw last ? withReason(error, last) : error;
        }
        last = error;
        const pause = pauseMs(number, error);
        if (performance.now() + pause >= deadline) {
          throw error;
        }
        await pauseFor(pause, signal);
      }
    }
  }

  /** Made once: what was read of `input` is gone. */
  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    const source = new Source(input);
    const rethrow = async (failure: unknown): Promise<never> => {
      source.rethrow();
      throw failure instanceof ConnectError ? await this.#error(failure) : failure;
    };
    const leftMs = leftUntil(performance.now() + this.#timeout(timeoutMs));
    await this.#renewal?.fresh({ leftMs, signal });
    const response = await this.#connection.transport
      .stream(method, signal, leftMs(), this.#headers(header), source, contextValues)
      .catch(rethrow);
    return { ...response, message: withErrors(response.message, rethrow) };
  }

  /** Send, and once more if the credential had expired and could be renewed. */
  async #renewed<Result>(send: () => Promise<Result>, deadline: Deadline): Promise<Result> {
    await this.#renewal?.fresh(deadline);
    try {
      return await send();
    } catch (refusal) {
      if (!(refusal instanceof MunimentError && (await this.#renewal?.renewed(refusal, deadline)))) {
        throw refusal;
      }
      return send();
    }
  }

  #headers(header: HeadersInit | undefined): Headers {
    const sent = new Headers(header);
    sent.set("authorization", `Bearer ${this.#credential}`);
    return sent;
  }

  async #error(failure: ConnectError): Promise<MunimentError> {
    return errorOf(failure, await this.#connection.explain(failure));
  }

  #timeout(timeoutMs: number | undefined): number {
    return timeoutMs === undefined ? this.#defaults.timeoutMs : checkedTimeout(timeoutMs);
  }
}

/** If the deadline passed during an attempt, the error with the failure of the previous attempt added. */
function withReason(error: unknown, before: MunimentError): unknown {
  return error instanceof MunimentError && error.code === Code.DeadlineExceeded && error.reasonName === ""
    ? new MunimentError(error.code, `${error.rawMessage}, after an attempt that failed: ${before.message}`)
    : error;
}

/** The milliseconds that are left of a deadline, and never none. */
function leftUntil(deadline: number): () => number {
  return () => Math.max(1, Math.ceil(deadline - performance.now()));
}

/** The credential. One that no header can carry is refused without being shown. */
function checkedCredential(credential: string): string {
  if (!/^[!-~]+$/.test(credential)) {
    throw new TypeError("a credential is visible ASCII characters: is there a line end in it?");
  }
  return credential;
}

/** Messages of the caller's. What reading them throws is kept: it is the caller's, and no failure of the call. */
class Source<T> implements AsyncIterableIterator<T> {
  readonly #messages: AsyncIterator<T>;
  #thrown: { readonly value: unknown } | undefined;

  constructor(messages: AsyncIterable<T>) {
    this.#messages = messages[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T>> {
    try {
      const next = await this.#messages.next();
      requireWholeTexts(next.value);
      return next;
    } catch (value) {
      this.#thrown = { value };
      throw value;
    }
  }

  async return(): Promise<IteratorResult<T>> {
    await this.#messages.return?.();
    return { done: true, value: undefined };
  }

  /** Connect says so before it says `return`. */
  throw(reason: unknown): Promise<IteratorResult<T>> {
    return Promise.reject(reason);
  }

  rethrow(): void {
    if (this.#thrown) {
      throw this.#thrown.value;
    }
  }
}

/** Protobuf would send U+FFFD in place of half of a surrogate pair. */
function requireWholeTexts(value: unknown): void {
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) {
    throw new MunimentError(Code.InvalidArgument, "a text has half of a surrogate pair, which cannot be sent");
  }
  if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    Object.values(value).forEach(requireWholeTexts);
  }
}

async function* withErrors<T>(
  messages: AsyncIterable<T>,
  rethrow: (failure: unknown) => Promise<never>,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (failure) {
    await rethrow(failure);
  }
}

/** The timeout, in whole milliseconds as gRPC sends it. */
function checkedTimeout(timeoutMs: number): number {
  if (!(timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS)) {
    throw new RangeError(`a timeout is more than 0 and at most ${LONGEST_TIMEOUT_MS} milliseconds`);
  }
  return Math.ceil(timeoutMs);
}
