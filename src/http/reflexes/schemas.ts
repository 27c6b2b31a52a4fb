import { z } from '@hono/zod-openapi'
import { iso } from '../../base/time.ts'
import { actionSchema } from '../../contract/action.ts'
import { reflexState, type ReflexVersion } from '../../contract/reflex.ts'
import type { ListedReflex, VersionSummary } from '../../store/reflexes.ts'

const time = z.iso.datetime()
const count = z.int()
const origin = z.object({ id: z.string(), version: count, hash: z.string() })

/** A body's JSON is checked when it is read: nothing in it is too deep, or could not be kept. */
export const jsonObject = z.record(z.string(), z.unknown())

const state = reflexState.meta({
  description:
    '`draft`: kept, not run on events. `shadow`: run on live events, acting on nothing. `active`: it acts. `retired`: run no more. The newest active version acts.',
})

export const listedReflex = z
  .object({
    id: z.string(),
    version: count,
    hash: z.string().meta({ description: "SHA-256 of the code. A version's code never changes." }),
    owner: z.string().meta({ description: "A key's name, or `scope:NAME` for what the agent of a scope wrote." }),
    scopes: z.array(z.string()).meta({ description: 'Where its owner may act: elsewhere it runs only where a chain names its version.' }),
    description: z.string(),
    state,
    state_reason: z.string().nullable(),
    provenance: z.object({ by: z.string(), scope: z.string().nullable(), template: z.string().nullable(), origin: origin.nullable() }),
    created_at: time,
  })
  .openapi('ListedReflex')

export const reflex = listedReflex
  .extend({
    code: z.string(),
    versions: z
      .array(z.object({ version: count, hash: z.string(), state, state_reason: z.string().nullable(), state_at: time, created_at: time }))
      .meta({ description: 'All of them, newest first.' }),
  })
  .openapi('Reflex')

export const registered = z
  .object({ id: z.string(), version: count, hash: z.string(), owner: z.string(), state })
  .openapi('RegisteredReflex')

export const action = actionSchema.openapi('Action')

export const reflexRun = z
  .object({
    action: action.nullable(),
    reason: z.enum(['fired', 'null', 'error', 'limit', 'invalid_action']),
    error: z.string().nullable(),
    fuel: count.meta({ description: 'The work done: the same for the same code on the same context.' }),
    duration_us: z.number().meta({ description: '0 where the clock stands still while a Worker computes.' }),
  })
  .openapi('ReflexRun')

export const receiptOf = ({ id, version, hash, owner, state }: ReflexVersion) => ({ id, version, hash, owner, state })

/** The owner's key id stays here: whoever reads this may be of another tenant. */
export const presentListed = ({ created_at, owner_id: _owner_id, ...listed }: ListedReflex) => ({ ...listed, created_at: iso(created_at) })

export const presentReflex = (found: ReflexVersion, versions: readonly VersionSummary[]) => ({
  ...presentListed(found),
  code: found.code,
  versions: versions.map(({ state_at, created_at, ...version }) => ({ ...version, state_at: iso(state_at), created_at: iso(created_at) })),
})
