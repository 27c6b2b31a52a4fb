import type { ScopeState } from '../../../../src/contract/scope.ts'
import type { Settings } from '../../../../src/contract/settings/settings.ts'
import { hasRole, request } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'

type Changed = Partial<Pick<Settings, 'paused' | 'reflexes_off'>>
type Patch = { [Name in keyof Changed]: Changed[Name] | null }
type SwitchProps = { path: string; patch: Patch; text: string; done: string; dangerous?: boolean; onDone: () => void }

/** Changes a setting at once. Only operators may. */
function Switch({ path, patch, text, done, dangerous = false, onDone }: SwitchProps) {
  const may = hasRole('operator')
  const { run, busy, problem } = useAction(() => request<ScopeState>('PATCH', path, { body: patch }))
  const act = async () => {
    if (!(await run(undefined)).ok) return
    notify(done)
    onDone()
  }
  return (
    <>
      <button
        type="button"
        class={dangerous ? 'danger' : ''}
        disabled={busy || !may}
        title={may ? '' : 'This needs the role operator.'}
        onClick={() => void act()}
      >
        {text}
      </button>
      <ErrorBox problem={problem} />
    </>
  )
}

export type OfScope = { path: string; settings: Settings; onDone: () => void }

export const Pause = ({ path, settings: { paused }, onDone }: OfScope) =>
  paused ? (
    <Switch path={path} patch={{ paused: null }} text="Resume scope" done="The scope works again." onDone={onDone} />
  ) : (
    <Switch path={path} patch={{ paused: true }} text="Pause scope" done="The scope is paused." dangerous onDone={onDone} />
  )

const ALL = '*'
/** A setting without entries is unset. */
const offPatch = (ids: readonly string[]): Patch => ({ reflexes_off: ids.length === 0 ? null : [...ids] })

/** Switches one reflex, if an id is given, or all of them, off or on in this scope. */
export function ReflexSwitch({ path, settings: { reflexes_off: off = [] }, onDone, id = ALL }: OfScope & { id?: string }) {
  const isOff = off.includes(id)
  const what = id === ALL ? 'all reflexes' : id
  // With all others, it is switched on by the switch of all.
  if (id !== ALL && off.includes(ALL)) return null
  const text = `Switch ${what} ${isOff ? 'on' : 'off'}`
  const patch = offPatch(isOff ? off.filter((one) => one !== id) : [...off, id])
  const done = isOff ? `${what}: on again` : `${what}: off in this scope`
  return <Switch path={path} patch={patch} text={text} done={done} dangerous={!isOff} onDone={onDone} />
}
