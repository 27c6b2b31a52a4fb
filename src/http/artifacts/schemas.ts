import { z } from '@hono/zod-openapi'
import type { ListedReflex, ListedSkill } from '../../artifacts/kinds.ts'
import { iso } from '../../base/time.ts'
import { reflexState } from '../../contract/reflex.ts'
import { skillState, type SkillVersion } from '../../contract/skill.ts'

const time = z.iso.datetime()
const text = z.string()
const reason = text.nullable()
export const search = z.string().min(1).max(200).optional().meta({ description: 'Case-insensitive search in ids and descriptions.' })

const state = {
  reflex: reflexState.meta({
    description:
      '`draft`: stored, not run on events. `shadow`: run on live events without acting. `active`: it acts. `retired`: no longer run. The newest active version acts.',
  }),
  skill: skillState.meta({
    description:
      '`candidate`: registered, not run. `active`: shown to models and run. `deprecated`: no longer run. Of several active versions the newest compatible one is used.',
  }),
}
const summaryOf = <Version extends z.ZodType, State extends z.ZodType>(of: { version: Version; hash: z.ZodString; state: State }) =>
  z.array(z.object({ ...of, state_reason: reason, state_at: time, created_at: time })).meta({ description: 'All of them, newest first.' })
const receipt = <Version extends z.ZodType, State extends z.ZodType>(version: Version, of: State) =>
  z.object({ id: text, version, hash: text, owner: text, state: of })

const number = z.int()
const codeHash = text.meta({ description: "SHA-256 of the code. A version's code never changes." })
const origin = z.object({ id: text, version: number, hash: text })
export const listedReflex = z
  .object({
    id: text,
    version: number,
    hash: codeHash,
    owner: text.meta({ description: 'The name of a key, or `scope:NAME` for what the agent of a scope wrote.' }),
    scopes: z.array(text).meta({ description: 'Where its owner may act. Elsewhere it runs only in chains that name its version.' }),
    description: text,
    state: state.reflex,
    state_reason: reason,
    provenance: z.object({ by: text, scope: text.nullable(), template: text.nullable(), origin: origin.nullable() }),
    created_at: time,
  })
  .openapi('ListedReflex')
export const reflex = listedReflex
  .extend({ code: text, versions: summaryOf({ version: number, hash: text, state: state.reflex }) })
  .openapi('Reflex')
export const registeredReflex = receipt(number, state.reflex).openapi('RegisteredReflex')

const manifestHash = text.meta({ description: 'SHA-256 of the manifest. A version never changes.' })
const skillFields = {
  id: text,
  version: text,
  hash: manifestHash,
  owner: text.meta({
    description: 'Who registered it: a key, or `scope:NAME` for the agent of a scope. The manifest names an owner of its own.',
  }),
  scopes: z.array(text).meta({ description: 'Where its owner may act. It is neither shown nor run elsewhere.' }),
  state: state.skill,
  state_reason: reason,
  state_at: time,
  provenance: z.object({ by: text, scope: text.nullable() }),
  created_at: time,
}
export const listedSkill = z.object({ ...skillFields, description: text }).openapi('ListedSkill')
export const changedSkill = z.object(skillFields).openapi('SkillVersion')
export const skill = changedSkill
  .extend({
    manifest: z.record(text, z.unknown()).meta({ description: 'With all its defaults filled in.' }),
    versions: summaryOf({ version: text, hash: manifestHash, state: state.skill }),
  })
  .openapi('Skill')
export const registeredSkill = receipt(text, state.skill).openapi('RegisteredSkill')

type Receipt<Version, State> = { id: string; version: Version; hash: string; owner: string; state: State }
export const receiptOf = <Version, State>({ id, version, hash, owner, state }: Receipt<Version, State>): Receipt<Version, State> => ({
  id,
  version,
  hash,
  owner,
  state,
})

/** Without the owner's key id: the reader may belong to another tenant. */
export const presentListedReflex = ({ created_at, owner_id: _owner_id, ...listed }: ListedReflex) => ({
  ...listed,
  created_at: iso(created_at),
})
export const presentListedSkill = ({ owner_id: _owner_id, ...listed }: ListedSkill) => withTimes(listed)
export const presentSkillVersion = ({ manifest: _manifest, owner_id: _owner_id, ...version }: SkillVersion) => withTimes(version)

export const withTimes = <Times extends { state_at: number; created_at: number }>({ state_at, created_at, ...rest }: Times) => ({
  ...rest,
  state_at: iso(state_at),
  created_at: iso(created_at),
})
