import { start } from '../shell/start.tsx';
import { TenantApp } from './tenant-app.tsx';

start(<TenantApp />);
