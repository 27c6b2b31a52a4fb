import { isJsonFields } from '../../base/json.ts'
import type { ReplayChanges } from '../../contract/reports/what-if.ts'
import { defaultSettings, mergeSettings, type Settings, type SettingsPatch } from '../../contract/settings/settings.ts'
import type { Basis } from '../recording.ts'

/** The changes to settings as one patch. Null if no setting changes. */
export function settingsChange({ settings, instructions, reflexes }: ReplayChanges): SettingsPatch | null {
  const named = { ...(instructions !== undefined && { instructions }), ...(reflexes !== undefined && { reflexes }) }
  const patch: SettingsPatch = { ...settings, ...named }
  return Object.keys(patch).length === 0 ? null : patch
}

export const isBasis = (value: unknown): value is Basis =>
  isJsonFields(value) && isJsonFields(value['settings']) && isJsonFields(value['agent'])

export function basisWith(basis: Basis, patch: SettingsPatch): Basis {
  const agent = typeof patch.agent === 'string' ? { name: patch.agent, version: null } : basis.agent
  return { ...basis, agent, settings: patched(basis.settings, patch) }
}

/** Recorded settings are complete, so null restores the default here. */
const patched = (settings: Settings, patch: SettingsPatch): Settings =>
  ({ ...defaultSettings, ...mergeSettings(settings, patch) }) as Settings
