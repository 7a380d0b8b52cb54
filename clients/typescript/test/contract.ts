// The contract as the package exports it.

import type { DescService } from "@bufbuild/protobuf";

/** The services among the exports of a module. */
export function services(module: object): DescService[] {
  return Object.values(module).filter((each): each is DescService => each?.kind === "service");
}
