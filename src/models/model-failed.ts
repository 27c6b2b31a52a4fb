import { tellFault, type ModelFault } from '../base/faults.ts'

/**
 * Thrown in the place of what the provider's client threw, once it is known whose fault it is. A
 * plain Error, so that the AI SDK does not retry it: the scope does, for all of its events at once.
 */
export class ModelFailed extends Error {
  override readonly name = 'ModelFailed'
  readonly fault: ModelFault

  constructor(fault: ModelFault, cause: unknown) {
    super(tellFault(fault), { cause })
    this.fault = fault
  }
}

/** Thrown where a model cannot be used as the deployment is configured. */
export class ModelMisconfigured extends Error {
  override readonly name = 'ModelMisconfigured'
}
