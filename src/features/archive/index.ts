import type { ScopeFeature } from '../../engine/feature.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Collaborators } from '../../engine/wiring.ts'
import type { Feature } from '../../feature.ts'
import { Archive } from './scope/archive.ts'
import { ArchivedRows } from './scope/archived.ts'

/** Old events and log entries move to a bucket, if `ARCHIVE` is bound. */
export const archive = { name: 'archive', inScope: archiveOf } satisfies Feature

/** Without a bucket, only the manifest of earlier files is left. */
function archiveOf(scope: Collaborators): ScopeFeature {
  const { env, log, counters, old_events: events, old_entries: entries } = scope
  const bucket = env.ARCHIVE
  const archived = new ArchivedRows({ ...scope, bucket })
  if (!bucket) return { name: 'archive', archived }
  const beforeLoss = (unit: Unit) => counters.snapshot(unit, log)
  const chainOf: ScopeFeature['chainFile'] = async (links, of) =>
    (await scope.features.find(({ chainFile }) => chainFile)?.chainFile?.(links, of)) ?? null
  const archiving = new Archive({ ...scope, bucket, events, entries, beforeLoss, chainOf })
  const state = () => ({ archive: { files: archived.newest, last_error: archiving.lastError } })
  return { name: 'archive', archived, archiving, state }
}
