export { testScope, type TestEvent, type TestScope, type TestScopeOptions } from './scope.ts'
export { missingExports } from './missing-exports.ts'
export type { ModelAnswer, ScriptedModel } from './model.ts'
