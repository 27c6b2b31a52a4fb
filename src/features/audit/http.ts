import { withIso } from '../../base/time.ts'
import { resource, serve } from '../../http/describe/operation.ts'
import { listed } from '../../http/describe/paging.ts'
import { storeOf } from '../../store/store.ts'
import { list } from './resources.ts'
import { listActions } from './store.ts'

export const auditRoutes = resource().openapiRoutes([
  serve(list, async ({ env, var: { principal } }, { query: { cursor: before, ...asked } }) => {
    const found = await listActions(storeOf(env), { ...asked, before, patterns: principal.scopes })
    return listed(found, {
      present: ({ reach: _reach, ...action }) => withIso(action, ['at']),
      cursor: ({ at, id }) => ({ at, id }),
    })
  }),
])
