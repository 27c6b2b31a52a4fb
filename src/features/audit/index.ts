import type { Feature } from '../../feature.ts'
import { storeOf } from '../../store/store.ts'
import { auditRoutes } from './http.ts'
import { list } from './resources.ts'
import { actions, forgetActions, insertAction } from './store.ts'

/** The changes that people make with their keys: who, when, what. */
export const audit = {
  name: 'audit',
  tables: { actions },
  operations: [list],
  routes: () => [auditRoutes],
  changed: (env, change) => insertAction(storeOf(env), { ...change, id: crypto.randomUUID() }),
  forgets: [{ name: 'audit', kept: 'a year', forget: forgetActions }],
} satisfies Feature
