import { scope } from './deployment.ts'

/** Follows the whole log of a scope, sends a message and waits for its outcome. No framework. */
const root = document.getElementById('root') as HTMLElement
root.innerHTML = `<h1></h1><p role="status"></p><button>Send</button><ol aria-label="Outcomes"></ol><pre aria-label="Log"></pre>`
const part = (selector: string): HTMLElement => root.querySelector(selector) as HTMLElement
part('h1').textContent = scope.name

scope.subscribe({
  after: 0,
  onEntry: ({ seq, kind }) => part('pre').append(`${seq} ${kind}\n`),
  onStatus: (status, error) => (part('p').textContent = error ? error.message : status),
})

async function sendAndWait(): Promise<void> {
  const { id } = await scope.send({ content: 'hello' })
  const { status, attempts } = await scope.outcome(id)
  part('ol').insertAdjacentHTML('beforeend', '<li></li>')
  part('li:last-child').textContent = `${status} after ${attempts} attempt`
}
part('button').addEventListener('click', () => void sendAndWait())
