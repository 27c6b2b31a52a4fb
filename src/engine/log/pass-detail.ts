import type { ReflexStep } from '../../reflexes/decide.ts'

type Reason = NonNullable<ReflexStep['passed']>['reason']

/** Without it, `reflex-passed, reason: error` would read as if a test had passed. */
export function meaningOf(reason: Reason): { detail?: string } {
  if (reason === 'null') return {}
  if (reason === 'error' || reason === 'limit' || reason === 'invalid_action')
    return { detail: 'the reflex failed and did nothing: the event continued' }
  if (reason === 'refused') return { detail: 'the scope does not allow the action that the reflex requested: the event continued' }
  return { detail: 'the reflex did not run: the event continued' }
}
