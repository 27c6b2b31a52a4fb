import type { ComponentChildren } from 'preact'
import type { ApiProblem } from '../api/problem.ts'
import type { Pages } from '../api/use-pages.ts'
import { Text } from './text.tsx'

/** A problem in the words of the API, with the parts of the input that are invalid; null: none. */
export function ErrorBox({ problem, onRetry }: { problem: ApiProblem | null; onRetry?: () => void }) {
  if (!problem) return null
  const { title, detail, status, errors = [] } = problem
  return (
    <div class="error" role="alert">
      <p>
        <b>{title}</b>
        {status > 0 && <span class="quiet"> ({status})</span>}
      </p>
      <p>
        <Text text={detail} most={2000} />
      </p>
      {errors.length > 0 && (
        <ul>
          {errors.map(({ path, message }) => (
            <li key={path + message}>
              {path !== '' && <code>{path}</code>} <Text text={message} />
            </li>
          ))}
        </ul>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

type Loadable<Value> = { value: Value | undefined; problem: ApiProblem | null; reload: () => void }
type LoadedProps<Value> = { data: Loadable<Value>; children: (value: Value) => ComponentChildren }

/**
 * The data once it is there, with a note if the last attempt failed. "Loading" appears only after a
 * moment.
 */
export function Loaded<Value>({ data: { value, problem, reload }, children }: LoadedProps<Value>) {
  return (
    <>
      <ErrorBox problem={problem} onRetry={reload} />
      {value === undefined ? !problem && <Loading /> : children(value)}
    </>
  )
}

type ListProps<Item> = { pages: Pages<Item>; empty: ComponentChildren; children: (items: Item[]) => ComponentChildren }

/** A list by pages; `empty` takes the place of its items if there are none. */
export function LoadedList<Item>({ pages, empty, children }: ListProps<Item>) {
  return (
    <>
      {pages.gaps.map((gap) => (
        <p key={gap} class="error" role="alert">
          {gap}
        </p>
      ))}
      <Loaded data={{ ...pages, value: pages.items }}>{(found) => (found.length === 0 && !pages.more ? empty : children(found))}</Loaded>
    </>
  )
}

export const Loading = () => (
  <p class="loading" role="status">
    Loading …
  </p>
)
/** Says why nothing is shown; the children say what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{title}</p>
      {children}
    </div>
  )
}
