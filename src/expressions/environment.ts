import { Environment } from '@marcbachmann/cel-js'

/** Functions of the host that expressions may call by name. */
export type ExpressionHost = { call(name: string, args: readonly unknown[]): unknown }

/** Bounds the length; `work.ts` bounds the work. */
const limits = { maxAstNodes: 200, maxDepth: 24, maxListElements: 50, maxMapEntries: 20, maxCallArguments: 8 }

const arithmetic = {
  '+': (left: number, right: number) => left + right,
  '-': (left: number, right: number) => left - right,
  '*': (left: number, right: number) => left * right,
  '/': (left: number, right: number) => left / right,
}

/** JSON has one kind of number, CEL has two, and CEL does not mix them. */
function baseEnvironment(): Environment {
  const environment = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, limits })
  for (const [sign, compute] of Object.entries(arithmetic)) {
    const handler = (left: bigint | number, right: bigint | number) => compute(Number(left), Number(right))
    environment.registerOperator(`int ${sign} double: double`, handler)
    environment.registerOperator(`double ${sign} int: double`, handler)
  }
  return environment
}

export const base = baseEnvironment()

/** Evaluation is synchronous, so one variable holds the current host. */
let current: ExpressionHost | null = null

export function withHost<Result>(host: ExpressionHost | null, evaluate: () => Result): Result {
  const before = current
  current = host
  try {
    return evaluate()
  } finally {
    current = before
  }
}

/** An environment in which each of `names` is a function that calls the current host. */
export function environmentWith(names: ReadonlySet<string>): Environment {
  if (names.size === 0) return base
  const environment = base.clone()
  for (const name of names) {
    for (let count = 0; count <= limits.maxCallArguments; count++) {
      const handler = (...args: unknown[]): unknown => {
        if (!current) throw new Error(`${name} is called outside of an evaluation`)
        return current.call(name, args)
      }
      environment.registerFunction(`${name}(${Array(count).fill('dyn').join(', ')}): dyn`, handler, { async: false })
    }
  }
  return environment
}
