import { useSignal } from '@preact/signals'
import { useAction } from '../api/use-action.ts'
import { ended, signIn } from '../api/session.ts'
import { ErrorBox } from '../ui/feedback.tsx'
import { useTitle } from '../ui/page.tsx'

export function SignIn() {
  useTitle('Sign in')
  const key = useSignal('')
  const { run, busy, problem } = useAction(signIn)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (key.value.trim() !== '') void run(key.value.trim())
  }
  return (
    <main class="sign-in">
      <h1>Reflex</h1>
      {ended.value !== null && problem === null && <p role="status">Signed out: {ended.value}</p>}
      <form onSubmit={submit}>
        <label>
          Key
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={key}
            onInput={({ currentTarget }) => (key.value = currentTarget.value)}
            ref={(input) => input?.focus()}
          />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
      <ErrorBox problem={problem} />
      <p class="quiet">
        The key is forgotten when this tab is closed. <code>npm run dev</code> and the demo print one.
      </p>
    </main>
  )
}
