import type { AnswerOf } from '../../../src/contract/operation.ts'
import { find, scopes as listScopes } from '../../../src/contract/operations/reflexes.ts'
import { ask } from '../ask.ts'
import type { Session } from '../session.ts'
import { written } from '../table.ts'

export type ShownProof = Shown['certificates'][number]
type Shown = AnswerOf<typeof find.answers>

/** Prints the versions of a reflex, each with its certificates. */
export async function show({ api, print, signal }: Session, ref: string): Promise<void> {
  const reflex = await ask({ api, signal }, find, { path: [ref] })
  const scopes = await ask({ api, signal }, listScopes, { path: [reflex.id] })
  print.result({ ...reflex, acts_in: scopes.items }, (paint) => [
    `${paint('bold', written(reflex.id))}  ${written(reflex.owner)}  ${written(reflex.description)}`,
    `acts: ${actsText(reflex)}`,
    ...scopes.items.map(
      ({ scope, acts, reason }) => `  in ${written(scope)}: ${acts ?? 'none'}${reason === null ? '' : `, ${written(reason)}`}`,
    ),
    ...(scopes.next_cursor === null ? [] : ['  and in further scopes: see --json, or the page of the reflex']),
    ...reflex.versions.flatMap((version) => [
      `version ${version.version} is ${version.state}${version.state_reason === null ? '' : `: ${written(version.state_reason)}`}`,
      ...proofLines(reflex.certificates.filter((proof) => proof.version === version.version)).map((line) => paint('dim', line)),
    ]),
  ])
}

function actsText({ acts, version, idle }: Shown): string {
  if (acts === null) return 'none'
  if (!idle || acts !== version) return String(acts)
  return `${acts} is active, and does not act${idle.since === null ? '' : ` since ${idle.since.slice(0, 10)}`}: ${written(idle.reason)}`
}

export const proofLines = (proofs: readonly ShownProof[]): string[] =>
  proofs.flatMap(({ scope, why }) => [`  in ${written(scope)}:`, ...why.map((sentence) => `    ${written(sentence)}`)])
