/** Values as JSON has them. */

/** An object with the fields of JSON: neither an array nor an instance of a class, in whichever realm it was made. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * A value as JSON. What has a `toJSON`, such as a Date, is what that returns; fields that are undefined are left out.
 *
 * @throws TypeError if JSON would silently change or lose something: NaN, a Map, a promise, undefined in an array.
 */
export function jsonOf(value: unknown): string {
  const text: string | undefined = JSON.stringify(value, kept);
  if (text === undefined) {
    throw new TypeError("a value or filter is not JSON: it is undefined");
  }
  return text;
}

/** Called by `JSON.stringify` with the object or array that contains the value. */
function kept(this: Record<string, unknown>, name: string, value: unknown): unknown {
  const isMissing = value === undefined && !Array.isArray(this);
  const wasLost = (value ?? null) === null && this[name] !== value; // by toJSON, as that of an invalid Date
  if (wasLost || !(isMissing || isJson(value))) {
    throw new TypeError(
      "a value or filter is not JSON: use texts, finite numbers, booleans, null, arrays and plain objects",
    );
  }
  return value;
}

function isJson(value: unknown): boolean {
  return (
    value === null ||
    ["string", "boolean"].includes(typeof value) ||
    Number.isFinite(value) ||
    Array.isArray(value) ||
    isPlain(value)
  );
}

/** Whether two values of JSON are equal: arrays and objects by what they contain. */
export function isSame(one: unknown, other: unknown): boolean {
  if (!(isPlain(one) && isPlain(other)) && !(Array.isArray(one) && Array.isArray(other))) {
    return one === other;
  }
  const [fields, others] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  return fields.size === others.size && [...fields].every(([name, each]) => isSame(each, others.get(name)));
}
