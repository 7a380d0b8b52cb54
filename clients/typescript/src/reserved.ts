/**
 * Begins the keys and tags by which adapters find their items. No tool lets a model write, replace or delete an item with
 * such a name: an adapter cannot tell by its content whether it stored an item.
 */
export const RESERVED = "muniment:";

/** The adapter that stored the memory with this key, such as `files`; `memory` if none did. */
export function sourceOf(key: string): string {
  return key.startsWith(RESERVED) ? (key.slice(RESERVED.length).split(/[:/#]/)[0] as string) : "memory";
}
