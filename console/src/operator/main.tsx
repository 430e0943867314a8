import { start } from '../shell/start.tsx';
import { OperatorApp } from './operator-app.tsx';

start(<OperatorApp />);
