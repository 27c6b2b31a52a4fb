import type { ListPage } from '../../src/contract/operation.ts'

/** The pages that features declare in their files `page.ts`. */
const files = import.meta.glob<ListPage<never>>('../../src/features/*/page.ts', { eager: true, import: 'page' })
export const declaredPages: readonly ListPage<never>[] = Object.values(files)
