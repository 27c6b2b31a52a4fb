import { isJsonFields } from '../../../base/json.ts'
import type { ReplayChanges } from '../contract/what-if.ts'
import { defaultSettings, mergeSettings, type Settings, type SettingsPatch } from '../../../contract/settings/settings.ts'
import type { Basis } from '../recording.ts'

/** The changes to settings as one patch. Null if no setting changes. */
export function settingsChange({ settings, instructions, reflexes }: ReplayChanges): SettingsPatch | null {
  const named = { ...(instructions !== undefined && { instructions }), ...(reflexes !== undefined && { reflexes }) }
  const patch: SettingsPatch = { ...settings, ...named }
  return Object.keys(patch).length === 0 ? null : patch
}

/** Settings that are numbers, names or words of a list: no value of them is masked. */
const CLOSED: ReadonlySet<string> = new Set<keyof SettingsPatch>([
  'agent',
  'consumer',
  'overlap',
  'max_attempts',
  'retry',
  'on_tool_error',
  'turn_timeout_ms',
  'effect_timeout_ms',
  'context_limit',
  'turn_limit',
  'inbox_limit',
  'retention_days',
  'idempotence_days',
  'token_budget',
  'tools',
  'reflexes',
  'k_cards',
  'tau',
  'policy_mode',
  'skill_protocol',
])

type WhatIfQuery = { changes?: ReplayChanges | undefined; budget?: unknown }

/**
 * True if the caller chose values that the replay may mask, by code, by a manifest or setting, or
 * by the instructions of a model that is asked.
 */
export function isForeign({ changes, budget }: WhatIfQuery): boolean {
  const { reflex_code, manifest, settings = {}, instructions } = changes ?? {}
  const isInstructed = (instructions ?? settings.instructions) !== undefined && budget !== undefined
  const names = Object.keys(settings).filter((name) => name !== 'instructions')
  return reflex_code !== undefined || manifest !== undefined || isInstructed || names.some((name) => !CLOSED.has(name))
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
