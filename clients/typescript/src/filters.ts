/** The filters of LangGraph's searches. */

import { isPlain, isSame, jsonOf } from "./json.js";

type Condition = (value: unknown) => boolean;

/**
 * Whether a value satisfies a filter. As in LangGraph's own store, null is not satisfied by a field that is missing;
 * in Python, None is.
 *
 * @throws TypeError if the filter cannot be satisfied by any value: an unknown operator, or nothing to compare with.
 */
export function filterOf(wanted: Record<string, unknown>): Condition {
  const conditions = Object.entries(wanted).map(([name, each]) => [name, conditionOf(each)] as const);
  return (value) =>
    isPlain(value) && conditions.every(([name, fits]) => fits(Object.hasOwn(value, name) ? value[name] : undefined));
}

/** Whether a value equals *wanted*, or satisfies comparisons such as `{ $gt: … }`; also inside arrays and objects. */
function conditionOf(wanted: unknown): Condition {
  if (Array.isArray(wanted)) {
    const each = Array.from(wanted, conditionOf);
    return (value) =>
      Array.isArray(value) && value.length === each.length && each.every((fits, index) => fits(value[index]));
  }
  if (!isPlain(wanted)) {
    return equals(wanted);
  }
  if (!Object.keys(wanted).some((name) => name.startsWith("$"))) {
    return filterOf(wanted);
  }
  const all = Object.entries(wanted).map(([name, to]) => comparison(name, to));
  return (value) => all.every((fits) => fits(value));
}

function equals(wanted: unknown): Condition {
  const json: unknown = JSON.parse(jsonOf(wanted));
  return (value) => isSame(value, json);
}

function comparison(name: string, to: unknown): Condition {
  const make = Object.hasOwn(COMPARISONS, name) ? COMPARISONS[name] : undefined;
  if (make === undefined) {
    throw new TypeError(`a filter has an unknown operator: use one of ${Object.keys(COMPARISONS).join(", ")}`);
  }
  return make(to);
}

const COMPARISONS: Record<string, (to: unknown) => Condition> = {
  $eq: equals,
  $ne: (to) => not(equals(to)),
  $gt: (to) => ordered(to, (number, limit) => number > limit),
  $gte: (to) => ordered(to, (number, limit) => number >= limit),
  $lt: (to) => ordered(to, (number, limit) => number < limit),
  $lte: (to) => ordered(to, (number, limit) => number <= limit),
  $in: oneOf,
  $nin: (to) => not(oneOf(to)),
};

function not(fits: Condition): Condition {
  return (value) => !fits(value);
}

function oneOf(to: unknown): Condition {
  if (!Array.isArray(to)) {
    throw new TypeError("$in and $nin take an array");
  }
  const all = Array.from(to, equals);
  return (value) => all.some((fits) => fits(value));
}

function ordered(to: unknown, compare: (number: number, limit: number) => boolean): Condition {
  const limit = numberOf(to);
  if (Number.isNaN(limit)) {
    throw new TypeError("$gt, $gte, $lt and $lte compare numbers only");
  }
  return (value) => compare(numberOf(value), limit); // NaN is neither less nor greater
}

/** A value as a number, also from a text such as "3.5". NaN if it is none: to JavaScript, null and "" are 0. */
function numberOf(value: unknown): number {
  const hasNumber = typeof value === "string" ? value.trim() !== "" : ["number", "boolean"].includes(typeof value);
  return hasNumber ? Number(value) : Number.NaN;
}
