/**
 * What the keys and tags begin with by which adapters find their items. No tool lets a model write, replace or delete an
 * item that has one: an adapter cannot tell by its content whether it stored an item.
 */
export const RESERVED = "muniment:";
