import { isFields } from '../../base/check-json.ts'
import type { SettingsPatch } from '../../contract/settings/settings.ts'
import type { Json } from '../../base/json.ts'
import { isSecretReference } from '../../skills/plan/template.ts'
import { parsePath, readPath } from '../../skills/cel/expression.ts'
import { withoutSecrets } from '../../skills/session/context.ts'
import type { SkillCache } from './skill-cache.ts'

/** The settings, or a patch of them. */
type Held = { blackboard?: SettingsPatch['blackboard'] }

/** Log entries with a blackboard, which may be older than a skill's secret paths. */
const TELLING = new Set(['settings-changed', 'blackboard-seeded'])

/**
 * Blackboard paths from which active skills take secret inputs. Settings must name a secret there,
 * as `{"secret": "REFLEX_TOOL_X"}`.
 */
export class SecretSettings {
  readonly #skill_cache: SkillCache

  constructor(skill_cache: SkillCache) {
    this.#skill_cache = skill_cache
  }

  /** Returns the reason to refuse a patch, or null. */
  async refusal(patch: Held): Promise<string | null> {
    const { blackboard } = patch
    if (!blackboard) return null
    await this.#skill_cache.catchUp({ at_once: true })
    for (const path of this.#skill_cache.secretPaths()) {
      const there = readPath(blackboard, parsePath(path) ?? [])
      if (!there.found || there.value === null || isSecretReference(there.value)) continue
      return (
        `blackboard.${path} is a secret input of an active skill, and every viewer of the scope sees its settings: keep the value as a secret of the ` +
        `deployment and write {"secret": "REFLEX_TOOL_NAME"} here, with the hosts that it is for in REFLEX_TOOL_NAME_HOSTS`
      )
    }
    return null
  }

  /** The settings without secrets. Refreshes the skill cache only if needed. */
  async settled<Settings extends Held>(settings: Settings): Promise<Settings> {
    if (Object.keys(settings.blackboard ?? {}).length > 0) await this.#skill_cache.catchUp({ at_once: false })
    return this.shown(settings)
  }

  shown<Settings extends Held>(settings: Settings): Settings {
    if (!settings.blackboard) return settings
    const blackboard = withoutSecrets(settings.blackboard as Json, '', this.#skill_cache.secretPaths())
    return { ...settings, blackboard: blackboard as Settings['blackboard'] }
  }

  /** Removes secrets from a log entry. */
  entry({ kind, text }: { kind: string; text: string }): string {
    if (!TELLING.has(kind) || this.#skill_cache.secretPaths().length === 0) return text
    const entry: unknown = JSON.parse(text)
    if (!isFields(entry)) return text
    const { patch, settings } = entry
    const parts = {
      ...(isFields(patch) ? { patch: this.shown(patch) } : {}),
      ...(isFields(settings) ? { settings: this.shown(settings) } : {}),
    }
    return JSON.stringify({ ...this.shown(entry), ...parts })
  }
}
