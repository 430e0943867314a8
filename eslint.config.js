import prettier from 'eslint-config-prettier';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

import { importRules } from './import-rules.js';

/** A spread of a literal only packs several lines into one, with a type around it (`as const`) or without. */
const LITERAL = ':matches(ObjectExpression, ArrayExpression)';
const TYPED = ':matches(TSAsExpression, TSSatisfiesExpression)';
const PLAIN_LISTS = {
  selector: `${LITERAL} > SpreadElement > :matches(${LITERAL}, ${TYPED} > ${LITERAL})`,
  message: 'Write the parts of the literal where they are spread.',
};
const CLOCK_AND_CHANCE = 'Time and chance are arguments in the domain (docs/architecture.md, import rules).';

export default defineConfig(
  {
    ignores: [
      'dist/',
      '.data/',
      'coverage/',
      'bench-results/',
      'console/dist/',
      'scripts/admin-api.d.ts',
      'console/public-api.d.ts',
      'node_modules/',
    ],
  },
  { plugins: { house: { rules: { imports: importRules } } }, rules: { 'house/imports': 'error' } },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked, prettier],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      // Prettier wraps code, and leaves comments as they are: these are written to 120 characters.
      'max-len': ['error', { code: 1_000, comments: 130, ignoreUrls: true }],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only shared/config reads the environment.' },
      ],
      'no-duplicate-imports': ['error', { allowSeparateTypeImports: true }],
      eqeqeq: 'error',
      // Factories return plain objects whose methods never use `this`, so a method may travel alone.
      '@typescript-eslint/unbound-method': 'off',
      // mongoose types schema options as classes, but takes plain objects by its own documentation.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
    },
  },
  {
    files: ['api/**/*.ts', 'workers/**/*.ts', 'shared/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', PLAIN_LISTS] },
  },
  { files: ['shared/config/**/*.ts', 'scripts/**/*.ts', 'test/**/*.ts'], rules: { 'no-restricted-properties': 'off' } },
  {
    files: ['shared/domain/**/*.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only shared/config reads the environment.' },
        { object: 'Date', property: 'now', message: CLOCK_AND_CHANCE },
        { object: 'Math', property: 'random', message: CLOCK_AND_CHANCE },
      ],
      'no-restricted-syntax': [
        'error',
        PLAIN_LISTS,
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: CLOCK_AND_CHANCE },
      ],
    },
  },
  {
    // supertest's `response.body` is `any` by its types; tests read it through typed helpers where it matters.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
);
