import { z } from '@hono/zod-openapi'
import { iso } from '../../base/time.ts'
import { skillState, type SkillVersion } from '../../contract/skill.ts'
import type { ListedSkill, SkillVersionSummary } from '../../store/skills.ts'

const time = z.iso.datetime()

const state = skillState.meta({
  description:
    '`candidate`: registered, and not run. `active`: shown to models and run. `deprecated`: run no more. Of several active ones the newest that fits is used.',
})
const hash = z.string().meta({ description: 'SHA-256 of the manifest. A version never changes.' })

const common = {
  id: z.string(),
  version: z.string(),
  hash,
  owner: z
    .string()
    .meta({ description: 'Who registered it: a key, or `scope:NAME` for the agent of a scope. The manifest names an owner of its own.' }),
  scopes: z.array(z.string()).meta({ description: 'Where its owner may act: elsewhere it is neither shown nor run.' }),
  state,
  state_reason: z.string().nullable(),
  state_at: time,
  provenance: z.object({ by: z.string(), scope: z.string().nullable() }),
  created_at: time,
}

export const listedSkill = z.object({ ...common, description: z.string() }).openapi('ListedSkill')
export const changedSkill = z.object(common).openapi('SkillVersion')

export const skill = changedSkill
  .extend({
    manifest: z.record(z.string(), z.unknown()).meta({ description: 'With all its defaults filled in.' }),
    versions: z
      .array(z.object({ version: z.string(), hash, state, state_reason: z.string().nullable(), state_at: time, created_at: time }))
      .meta({ description: 'All of them, newest first.' }),
  })
  .openapi('Skill')

export const registeredSkill = z.object({ id: z.string(), version: z.string(), hash, state, owner: z.string() }).openapi('RegisteredSkill')

export const receiptOf = ({ id, version, hash, state, owner }: SkillVersion) => ({ id, version, hash, state, owner })

/** The owner's key id stays here: whoever reads this may be of another tenant. */
export const presentListed = ({ owner_id: _owner_id, ...listed }: ListedSkill) => withTimes(listed)

export const presentVersion = ({ manifest: _manifest, owner_id: _owner_id, ...version }: SkillVersion) => withTimes(version)

export const presentSkill = (found: SkillVersion, versions: readonly SkillVersionSummary[]) => {
  const { manifest } = found
  return { ...presentVersion(found), manifest, versions: versions.map(withTimes) }
}

const withTimes = <Times extends { state_at: number; created_at: number }>({ state_at, created_at, ...rest }: Times) => ({
  ...rest,
  state_at: iso(state_at),
  created_at: iso(created_at),
})
