// What comes with a status, for people and for programs.

import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type Any, anyIs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.js";
import { Classification } from "./gen/muniment/v1/classification_pb.js";
import { type BudgetExceeded, BudgetExceededSchema } from "./gen/muniment/v1/note_pb.js";
import { type ImportProgress, ImportProgressSchema } from "./gen/muniment/v1/passage_pb.js";
import { type ConversationTainted, ConversationTaintedSchema } from "./gen/muniment/v1/session_pb.js";

/** A field of a request that breaks a rule. */
export interface Violation {
  /** Where it is, such as `tags[3]`. */
  readonly field: string;
  /** The rule, such as `is too long`. */
  readonly description: string;
}

/** What the details say in few words: numbers and names of fields, never content. */
export function facts(details: readonly Any[]): string {
  return [
    violationsFact(violationsIn(details)),
    budgetFact(find(details, BudgetExceededSchema)),
    taintFact(find(details, ConversationTaintedSchema)),
    progressFact(find(details, ImportProgressSchema)),
    quotaFact(find(details, ErrorInfoSchema)),
    retryFact(retryAfterMs(details)),
  ]
    .filter(Boolean)
    .join("; ");
}

function violationsFact(violations: readonly Violation[]): string {
  return violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
}

function budgetFact(budget: BudgetExceeded | undefined): string {
  if (!budget) {
    return "";
  }
  const { wouldBeChars, overByChars } = budget;
  return `over by ${overByChars} characters: ${wouldBeChars} of ${wouldBeChars - overByChars}`;
}

function taintFact(tainted: ConversationTainted | undefined): string {
  return tainted ? `the taint is ${Classification[tainted.taint]}` : "";
}

function quotaFact(info: ErrorInfo | undefined): string {
  return info?.metadata.quota ? `quota: ${info.metadata.quota}` : "";
}

function progressFact(progress: ImportProgress | undefined): string {
  return progress ? `${progress.storedCount} passages stored, ${progress.existingCount} already there` : "";
}

function retryFact(milliseconds: number | undefined): string {
  return milliseconds === undefined ? "" : `retry after ${milliseconds / 1000} s`;
}

/** Milliseconds after which the server asks to be tried again. */
export function retryAfterMs(details: readonly Any[]): number | undefined {
  const delay = find(details, RetryInfoSchema)?.retryDelay;
  return delay && durationMs(delay);
}

/** The fields that break rules. */
export function violationsIn(details: readonly Any[]): readonly Violation[] {
  const broken = find(details, BadRequestSchema)?.fieldViolations ?? [];
  return broken.map(({ field, description }) => ({ field, description }));
}

/** The first detail of one kind. Undefined: there is none, or it is damaged. */
export function find<Desc extends DescMessage>(details: readonly Any[], schema: Desc): MessageShape<Desc> | undefined {
  const packed = details.find((detail) => anyIs(detail, schema));
  try {
    return packed && fromBinary(schema, packed.value);
  } catch {
    return undefined;
  }
}
