import type { Command } from 'commander'
import type { AuditedDecision } from '../../../src/features/proof/contract/audit.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { written } from '../table.ts'

const HELP = `
What a person says counts in the certificate of the reflex that decided, and what is learned takes it
instead of the decision. Nothing that was done changes.

Examples:
  reflex events feedback shop/berlin 0199… --right
  reflex events feedback shop/berlin 0199… --wrong --reply "We open at nine." --reason "it is summer"`

type Said = { right?: true; wrong?: true; reply?: string; reason?: string }

export function addFeedback(events: Command): void {
  events
    .command('feedback <scope> <id>')
    .description('Say that the decision about an event was right or wrong')
    .option('--right', 'it was right')
    .option('--wrong', 'it was wrong')
    .option('--reply <text>', 'the reply that would have been right; it is not sent')
    .option('--reason <text>', 'why')
    .addHelpText('after', HELP)
    .action(handler(feedback))
}

async function feedback({ api, print, signal }: Session, scope: string, id: string, { right, wrong, ...more }: Said): Promise<void> {
  if ((right === undefined) === (wrong === undefined)) throw new UsageError('Say --right or --wrong.')
  const body = { right: right === true, ...more }
  const judged = await api().json<AuditedDecision>(route(['scopes', scope, 'events', id, 'feedback']), { method: 'POST', body, signal })
  const { by, reflex_id, version } = judged.decided
  const decider = by === 'reflex' ? `reflex ${written(reflex_id ?? '')}@${version}` : 'a turn'
  print.result(judged, () => [
    `The decision of ${decider} is judged${judged.counted ? ', and counts in its certificate or its metrics' : ''}.`,
  ])
}
