// Prints `PASSED FAILED SKIPPED` of vitest's JSON report.
import { readFileSync } from 'node:fs'

const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
console.log(numPassedTests, numFailedTests, numPendingTests + numTodoTests)
