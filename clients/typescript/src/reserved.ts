/**
 * Begins the keys and tags by which adapters find their items. No tool lets a model write, replace or delete an item with
 * such a name: an adapter cannot tell by its content whether it stored an item.
 */
export const RESERVED = "muniment:";
