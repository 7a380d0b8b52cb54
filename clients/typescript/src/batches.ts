// Divides memories into batches that `saveMemories` takes.

const MAX_BATCH = 100;
const MAX_BATCH_BYTES = 128 * 1024;

/** A memory to save. */
export interface Saved {
  readonly key: string;
  readonly content: string;
  readonly tags: string[];
}

/** *memories* in their order, as few batches as possible. One that is larger than a batch is one by itself. */
export function* batches(memories: readonly Saved[]): Generator<Saved[]> {
  let batch: Saved[] = [];
  let size = 0;
  for (const memory of memories) {
    const own = [memory.key, memory.content, ...memory.tags].reduce(
      (sum, text) => sum + Buffer.byteLength(text) + 8,
      64,
    );
    if (batch.length > 0 && (batch.length === MAX_BATCH || size + own > MAX_BATCH_BYTES)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(memory);
    size += own;
  }
  if (batch.length > 0) {
    yield batch;
  }
}
