import type { Certificate } from '../../../src/contract/reports/certificate.ts'
import { route } from '../pages.ts'
import type { Session } from '../session.ts'
import { written } from '../table.ts'

type Version = { version: number; state: string; state_reason: string | null }
export type Proof = { version: number; scope: string; certificate: Certificate; why: string[] }
type Shown = { id: string; owner: string; description: string; versions: Version[]; certificates: Proof[] }

/** Prints the versions of a reflex, each with its certificates. */
export async function show({ api, print, signal }: Session, ref: string): Promise<void> {
  const reflex = await api().json<Shown>(route(['reflexes', ref]), { signal })
  print.result(reflex, (paint) => [
    `${paint('bold', written(reflex.id))}  ${written(reflex.owner)}  ${written(reflex.description)}`,
    ...reflex.versions.flatMap((version) => [
      `version ${version.version} is ${version.state}${version.state_reason === null ? '' : `: ${written(version.state_reason)}`}`,
      ...proofLines(reflex.certificates.filter((proof) => proof.version === version.version)).map((line) => paint('dim', line)),
    ]),
  ])
}

export const proofLines = (proofs: readonly Proof[]): string[] =>
  proofs.flatMap(({ scope, why }) => [`  in ${written(scope)}:`, ...why.map((sentence) => `    ${written(sentence)}`)])
