import type { Teacher } from '../../contract/reports/certificate.ts'
import { modelName } from '../../models/resolve-model.ts'
import type { Ground } from '../storage/wiring.ts'

/** The part of a teacher that only its model calls show. */
type Shown = Pick<Teacher, 'prompt_hash' | 'tools_hash'>

type Parts = Pick<Ground, 'database' | 'env' | 'agent' | 'settings'>

/** The slow path that decides in this scope: the teacher of what is learned here. */
export class Teachers {
  readonly #parts: Parts
  #shown: Shown | null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#shown = parts.database.read<Shown | null>('teacher', null)
  }

  /** As it is now. `model` is `none` until a turn has called one. */
  current(): Teacher {
    const { env, agent, settings } = this.#parts
    const { name, version } = agent()
    return {
      by: settings().consumer === 'pull' ? 'pull' : 'model',
      agent_version: version === undefined ? name : `${name}@${version}`,
      model: this.#shown ? modelName(env) : 'none',
      prompt_hash: this.#shown?.prompt_hash ?? '',
      tools_hash: this.#shown?.tools_hash ?? '',
      settings_revision: 0,
    }
  }
}
