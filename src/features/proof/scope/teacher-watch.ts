import { textHash } from '../../../base/hash.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { Teacher } from '../../../contract/certificate.ts'
import { modelName } from '../../../models/resolve-model.ts'
import { teacherChange } from '../../../evidence/certificate.ts'
import { beginIdentity, type Identity, showIdentity } from '../../../evidence/identity.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'

type TeacherWatchParts = Pick<Ground, 'database' | 'env' | 'agent' | 'settings'>
/** `set`: hash of the setting `instructions`. `logged`: the teacher of the last log entry. */
type Known = { identity: Identity; set: string | null; logged: Teacher | null }
type Shown = { lines: ReadonlySet<string>; tools: ReadonlySet<string> }

/** The slow path that decides in this scope: the teacher of what is learned here. */
export class TeacherWatch {
  readonly #parts: TeacherWatchParts
  #known: Known | null
  #current: { of: Settings; teacher: Teacher } | null = null

  constructor(parts: TeacherWatchParts) {
    this.#parts = parts
    this.#known = parts.database.read<Known | null>('teacher', null)
  }

  /**
   * As it is now. A new model, agent or setting counts at once, other instructions and tools once
   * turns have shown them. `model` is `none` until a turn has called one.
   */
  current(): Teacher {
    const settings = this.#parts.settings()
    if (this.#current?.of !== settings) this.#current = { of: settings, teacher: this.#read(settings) }
    return this.#current.teacher
  }

  /** Notes what the model calls of a turn showed. True if the teacher is another one now. */
  shown(unit: Unit, shown: Shown | null, { logs }: { logs: boolean }): boolean {
    if (shown) this.#show(unit, { lines: Array.from(shown.lines), tools: Array.from(shown.tools) })
    const known = this.#known
    if (!known || !logs) return false
    const teacher = this.current()
    const change = known.logged && teacherChange(known.logged, teacher)
    if (known.logged && change === null) return false
    this.#write(unit, { ...known, logged: teacher })
    const reason = change === null ? 'its first turn with a model ended' : `${change} of the slow path changed`
    unit.log({ ...scopeHead(), kind: 'teacher-changed', teacher, reason })
    return change !== null
  }

  #show(unit: Unit, shown: { lines: string[]; tools: string[] }): void {
    const set = setBy(this.#parts.settings())
    const before = this.#known
    const logged = before?.logged ?? null
    if (before?.set !== set || !before)
      return this.#write(unit, { identity: beginIdentity(shown, { named: set ?? undefined }), set, logged })
    const { identity } = showIdentity(before.identity, shown)
    if (JSON.stringify(identity) !== JSON.stringify(before.identity)) this.#write(unit, { ...before, identity })
  }

  #write(unit: Unit, known: Known): void {
    this.#known = known
    this.#current = null
    unit.write('teacher', known)
  }

  #read(settings: Settings): Teacher {
    const { env, agent, database } = this.#parts
    const { name, version } = agent()
    const set = setBy(settings)
    const { identity } = this.#known ?? {}
    return {
      by: settings.consumer === 'pull' ? 'pull' : 'model',
      agent_version: [version === undefined ? name : `${name}@${version}`, env.REFLEX_DECISION_MODEL ?? []].flat().join(' beside '),
      model: identity ? modelName(env, settings) : 'none',
      prompt_hash: set !== null && this.#known?.set !== set ? set : (identity?.prompt_hash ?? ''),
      tools_hash: identity?.tools_hash ?? '',
      settings_revision: database.read('settings_revision', 0),
    }
  }
}

const setBy = ({ instructions }: Settings): string | null => (instructions === undefined ? null : textHash(instructions))
