// Prints the files of vitest's JSON report in which a test failed, one a line. If a file failed
// without a failed test, because it did not load, prints nothing: running it again proves nothing.
import { readFileSync } from 'node:fs'

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed')
const accountable = failed.every(({ assertionResults }) => assertionResults.some(({ status }) => status === 'failed'))
if (accountable) for (const { name } of failed) console.log(name)
