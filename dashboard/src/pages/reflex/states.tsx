import { useSignal } from '@preact/signals'
import { hasRole, part, post, type Role } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Field } from '../../ui/form.tsx'
import { notify } from '../../ui/notices.tsx'
import { NeedsRole, Section } from '../../ui/page.tsx'
import { Status, statusText } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'

const NEEDED: Role = 'operator'
type Kind = 'reflex' | 'skill'
type StatedVersion = { version: string | number; state: string; state_reason: string | null; state_at: string; hash: string }
type StateMove = { to: string; title: string }

/** The steps that a person may take with a version in a state. */
const steps: Record<Kind, Record<string, StateMove[]>> = {
  reflex: {
    draft: [
      { to: 'shadow', title: 'Try in shadow mode' },
      { to: 'active', title: 'Promote' },
      { to: 'retired', title: 'Retire' },
    ],
    shadow: [
      { to: 'active', title: 'Promote' },
      { to: 'retired', title: 'Retire' },
    ],
    active: [
      { to: 'shadow', title: 'Demote' },
      { to: 'retired', title: 'Retire' },
    ],
    retired: [{ to: 'shadow', title: 'Try in shadow mode' }],
  },
  skill: {
    candidate: [
      { to: 'active', title: 'Activate' },
      { to: 'deprecated', title: 'Deprecate' },
    ],
    active: [{ to: 'deprecated', title: 'Deprecate' }],
    deprecated: [{ to: 'active', title: 'Activate' }],
  },
}

type StatesProps = { kind: Kind; id: string; versions: readonly StatedVersion[]; reload: () => void }

/** The versions with their states, and the way from one state to another. */
export function States({ kind, id, versions, reload }: StatesProps) {
  const changing = useSignal<{ version: StatedVersion; step: StateMove } | null>(null)
  const may = hasRole(NEEDED)
  return (
    <Section title="Versions">
      {!may && <NeedsRole role={NEEDED} what="To change a state" />}
      <Table
        label="States of the versions"
        rows={versions}
        keyOf={({ version }) => String(version)}
        columns={[
          { title: 'Version', cell: ({ version }) => version, width: 6 },
          { title: 'State', of: ({ state }) => state, kind: 'status' },
          { title: 'Since', of: ({ state_at }) => state_at, kind: 'time' },
          { title: 'Reason', of: ({ state_reason }) => state_reason ?? '' },
          {
            title: 'Change',
            cell: (version) => (
              <span class="actions">
                {may &&
                  (steps[kind][version.state] ?? []).map((step) => (
                    <button key={step.to} type="button" onClick={() => (changing.value = { version, step })}>
                      {step.title}
                    </button>
                  ))}
              </span>
            ),
            width: 20,
          },
        ]}
      />
      {changing.value && <Change kind={kind} id={id} {...changing.value} onClose={() => (changing.value = null)} reload={reload} />}
    </Section>
  )
}

type ChangeProps = { kind: Kind; id: string; version: StatedVersion; step: StateMove; onClose: () => void; reload: () => void }

/** Asks for the reason. A refusal says what is missing, and only then may it be forced. */
export function Change({ kind, id, version, step, onClose, reload }: ChangeProps) {
  const reason = useSignal('')
  const force = useSignal(false)
  const ref = `${id}@${version.version}`
  const path = `/v1/${kind === 'reflex' ? 'reflexes' : 'skills'}/${part(ref)}/state`
  const { run, busy, problem } = useAction((body: object) => post<unknown>(path, body))
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await run({
      state: step.to,
      ...(reason.value.trim() && { reason: reason.value.trim() }),
      ...(force.value && { force: true }),
    })
    if (!answer.ok) return
    notify(`${ref} is ${statusText(step.to)} now.`)
    reload()
    onClose()
  }
  return (
    <Dialog title={`${step.title}: ${visible(ref)}`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p>
          It is <Status status={version.state} /> and becomes <Status status={step.to} />. {effects[step.to]}
        </p>
        <Field
          label="Reason"
          rows={3}
          value={reason.value}
          required={step.to === 'retired' || force.value}
          onInput={(text) => (reason.value = text)}
        />
        <ErrorBox problem={problem} />
        {problem?.status === 409 && step.to === 'active' && (
          <label class="inline">
            <input type="checkbox" checked={force} onChange={({ currentTarget }) => (force.value = currentTarget.checked)} />
            Do it all the same
          </label>
        )}
        <button type="submit" class={step.to === 'retired' ? 'danger' : 'primary'} disabled={busy}>
          {busy ? 'Changing …' : step.title}
        </button>
      </form>
    </Dialog>
  )
}

const effects: Record<string, string> = {
  active: 'The scopes follow within seconds, and it acts.',
  shadow: 'It runs on events without acting, and is compared with the actual decisions.',
  retired: 'It is never run again.',
  deprecated: 'It is no longer shown to models, and no longer run.',
}
