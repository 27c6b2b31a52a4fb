import type { ReflexHead, ListedSkill } from '../../artifacts/kinds.ts'
import { withIso } from '../../base/time.ts'
import type { SkillVersion } from '../../contract/skill.ts'

type Receipt<Version, State> = { id: string; version: Version; hash: string; owner: string; state: State }
export const receiptOf = <Version, State>({ id, version, hash, owner, state }: Receipt<Version, State>): Receipt<Version, State> => ({
  id,
  version,
  hash,
  owner,
  state,
})

/** Without the owner's key id: the reader may belong to another tenant. */
export const presentListedReflex = ({ owner_id: _owner_id, ...listed }: ReflexHead) => withIso(listed, ['created_at'])
export const presentListedSkill = ({ owner_id: _owner_id, ...listed }: ListedSkill) => withTimes(listed)
export const presentSkillVersion = ({ manifest: _manifest, owner_id: _owner_id, ...version }: SkillVersion) => withTimes(version)

export const withTimes = <Times extends { state_at: number; created_at: number }>(version: Times) =>
  withIso(version, ['state_at', 'created_at'])
