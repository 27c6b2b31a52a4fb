import { AsyncLocalStorage } from 'node:async_hooks'

const chain = new AsyncLocalStorage<readonly string[]>()

/** The skills within which the code at hand runs, outermost first: a tool may start a turn of its own. */
export const skillChain = (): readonly string[] => chain.getStore() ?? []

export const withinSkills = <Result>(skills: readonly string[], work: () => Result): Result => chain.run(skills, work)
