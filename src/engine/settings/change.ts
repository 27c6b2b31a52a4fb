import type { Refused } from '../../base/result.ts'
import type { Settings, SettingsPatch } from '../../contract/settings/settings.ts'
import type { Loop } from '../loop.ts'
import type { SettingsStore } from './settings-store.ts'
import type { SecretSettings } from '../skills/secret-settings.ts'
import { scopeHead } from '../log/spans.ts'
import type { TraceContext } from '../../contract/scope-api.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { ReflexReference } from '../../contract/reflex.ts'

type ConfigurationParts = Lanes & {
  secret_settings: SecretSettings
  loop: Loop
}

/** `by` is a name for the log; `key_id` is the key that made the change, or null. */
type Changer = { by: string; key_id?: string | null; trace?: TraceContext | undefined }

export class Configuration {
  readonly #parts: ConfigurationParts

  constructor(parts: ConfigurationParts) {
    this.#parts = parts
  }

  async change(
    patch: SettingsPatch,
    { by, key_id = null, trace }: Changer,
  ): Promise<{ ok: true; settings: Settings } | Refused<'invalid'>> {
    const refusal = await this.#parts.secret_settings.refusal(patch)
    if (refusal !== null) return { ok: false, reason: 'invalid', detail: refusal }
    return this.#apply(patch, { by, trace }, (unit) => {
      if (patch.reflexes === undefined) return
      this.#parts.programs.resume(unit)
      this.#parts.programs.setBy(unit, key_id)
    })
  }

  /** Changes the chain alone: what is suspended stays so, and the chain keeps its owner. */
  async rechain(
    change: (chain: readonly ReflexReference[]) => ReflexReference[],
    by: string,
  ): Promise<{ ok: true; reflexes: readonly ReflexReference[] } | Refused<'invalid'>> {
    const before = this.#parts.store.settings().reflexes
    const reflexes = change(before)
    if (JSON.stringify(reflexes) === JSON.stringify(before)) return { ok: true, reflexes }
    const changed = await this.#apply({ reflexes }, { by }, () => {})
    return changed.ok ? { ok: true, reflexes: changed.settings.reflexes } : changed
  }

  async #apply(patch: SettingsPatch, { by, trace }: Changer, also: (unit: Unit) => void): ReturnType<Configuration['change']> {
    const { unit, outage, loop, turns, reflex_sync, programs, windows, alarm } = this.#parts
    const before = JSON.stringify(this.#parts.store.settings().reflexes)
    const changed = unit((unit) => {
      const result = this.#change(unit, patch, { by, trace })
      if (!result.ok) return result
      for (const name of Object.keys(patch)) this.#parts.guard.release({ kind: 'setting', id: name })
      programs.forgetLinks()
      also(unit)
      this.#parts.parking.release(unit)
      outage.hurry(unit)
      return result
    })
    if (!changed.ok) return changed
    this.#parts.memory.resize(changed.settings.context_limit)
    // Updates the chain before the response, so that it sees the next event.
    if (patch.reflexes !== undefined || JSON.stringify(changed.settings.reflexes) !== before) {
      windows.forget()
      await reflex_sync.rechained()
    }
    unit((unit) => loop.endWaiting(unit))
    loop.perceiveWaiting()
    turns.consider()
    alarm.rearm()
    return { ...changed, settings: this.#parts.secret_settings.shown(changed.settings) }
  }

  #change(unit: Unit, patch: SettingsPatch, { by, trace }: Changer): ReturnType<SettingsStore['change']> {
    const { store, log, secret_settings, features } = this.#parts
    const result = store.change(unit, patch)
    if (!result.ok) return result
    const { settings } = result
    log.masks.redact(settings)
    const told = secret_settings.shown(patch)
    const held = secret_settings.shown(settings)
    const shown = { patch: log.clean(told) as SettingsPatch, settings: log.clean(held) as Settings }
    const revision = unit.log({ ...scopeHead(trace), kind: 'settings-changed', by, ...shown })
    unit.write('settings_revision', revision)
    for (const feature of features) feature.configured?.(unit, patch, { settings, revision })
    return result
  }
}
